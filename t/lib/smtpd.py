# SPDX-License-Identifier: Apache-2.0
# smtpd.py: an SMTP server (aiosmtpd) that keeps what it gets, for tests
#
#     smtpd.py FOLDER [USER PASSWORD CERTIFICATE]
#
# Prints its port on 127.0.0.1. Each message goes to FOLDER/N, with its envelope
# in X-Envelope lines before it. With an account it wants STARTTLS first;
# CERTIFICATE is a PEM file that has the key as well. A recipient
# "TIMES.CODE@..." is answered that many times with that code, or
# "TIMES.CODE-5-1-1@..." with a status as well; "slow@..." is taken after half a
# second; "given@..." gets the Message-ID that Amazon SES would give it, which the
# answer and X-Given have; "mute@..." is taken, and the first time the answer does
# not come until the file FOLDER/speak is there; "silent...@..." is answered only the
# first time. With DSN=1 in its environment it offers DSN, and X-Envelope-Dsn has the
# parameters of MAIL and RCPT, in capitals; with
# DSN=no it offers it and answers 501 to them. With SMTPUTF8=1 it offers that.
import asyncio
import os
import re
import socket
import ssl
import sys
import uuid

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, SMTP

folder = sys.argv[1]
account = [a.encode() for a in sys.argv[2:4]]
certificate = sys.argv[4] if account else None
dsn = os.environ.get("DSN")
refused = {}
heard = set()


class WithDsn(SMTP):
    asked = []

    def _getparams(self, params):
        made = super()._getparams([p for p in params if not p.startswith(
            ("RET=", "ENVID=", "NOTIFY=", "ORCPT="))] if dsn == "1" else params)
        if any(p.startswith("RET=") for p in params):
            self.asked = []
        self.asked = self.asked + params
        return made


class Keeper:
    count = 0

    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        session.host_name = hostname
        return responses[:-1] + ["250-DSN"] * bool(dsn) + responses[-1:]

    async def handle_RCPT(self, server, session, envelope, address, options):
        name = re.match(r"(\d+)\.(\d+)((?:-\d+)*)@", address)
        if name:
            refused[address] = refused.get(address, 0) + 1
            if refused[address] <= int(name[1]):
                status = name[3].replace("-", " ", 1).replace("-", ".")
                return name[2] + status + " <" + address + "> not today"
        if address.startswith("silent"):
            if address in heard:
                await asyncio.sleep(600)
            heard.add(address)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        if envelope.rcpt_tos[0].startswith("slow"):
            await asyncio.sleep(0.5)
        Keeper.count += 1
        path = os.path.join(folder, str(Keeper.count))
        given = None
        if envelope.rcpt_tos[0].startswith("given"):
            given = "%016x-%s-000000" % (Keeper.count, uuid.uuid4())
        with open(path + ".new", "wb") as out:
            out.write(b"X-Envelope-From: %s\r\n" % envelope.mail_from.encode())
            for to in envelope.rcpt_tos:
                out.write(b"X-Envelope-To: %s\r\n" % to.encode())
            if dsn:
                out.write(b"X-Envelope-Dsn: %s\r\n" % " ".join(
                    server.asked).encode())
            if given:
                out.write(b"X-Given: %s\r\n" % given.encode())
            out.write(envelope.content)
        os.rename(path + ".new", path)
        to = envelope.rcpt_tos[0]
        if to.startswith("mute") and to not in heard:
            heard.add(to)
            while not os.path.exists(os.path.join(folder, "speak")):
                await asyncio.sleep(0.02)
        return "250 Ok " + given if given else "250 kept"


def authenticate(server, session, envelope, mechanism, data):
    good = [data.login, data.password] == account
    # not "handled": the server answers 535 itself
    return AuthResult(success=good, handled=good)


class Loopback(Controller):
    def factory(self):
        options = dict(enable_SMTPUTF8=bool(os.environ.get("SMTPUTF8")))
        if account:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(certificate)
            options.update(authenticator=authenticate, auth_required=True,
                           tls_context=tls, require_starttls=True)
        return (WithDsn if dsn else SMTP)(self.handler, hostname="127.0.0.1", **options)


controller = Loopback(Keeper(), hostname="127.0.0.1", port=int(
    os.environ.get("PORT", "0")) or socket.create_server(
        ("127.0.0.1", 0)).getsockname()[1])
controller.start()
print(controller.port, flush=True)
sys.stdin.read()
controller.stop()
