/* SPDX-License-Identifier: Apache-2.0 */
/* record_io.c: for LD_PRELOAD: what this program asks the system to keep, and what
 * it sends over TCP, as lines of the file $CRM_RECORD_IO, in the order in which
 * it was done:
 *
 *     create PATH          open() with O_CREAT
 *     write PATH TEXT      bytes for a file, up to the first newline
 *     sync PATH SIZE       fsync or fdatasync, with the file's size
 *     rename FROM TO, link FROM TO, unlink PATH
 *     send PORT TEXT       bytes for a peer
 *
 * While the file $CRM_RECORD_IO.full exists, the disk has no room for the journal;
 * while $CRM_RECORD_IO.broken exists, it cannot keep the journal's lines.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(type, name) type = dlsym(RTLD_NEXT, name)
#define TEXT_MAX 400

/* Add the line "VERB WHAT TEXT" to the record; of TEXT, LEN bytes, its first line.
 * errno stays. */
static void record(const char *verb, const char *what, const char *text,
                   size_t len)
{
    const char *path = getenv("CRM_RECORD_IO");
    char line[4096 + TEXT_MAX];
    int number = errno, fd, size;

    if (path) {
        for (size_t i = 0; i < len; i++) {
            if (text[i] == '\n' || text[i] == '\r') {
                len = i;
            }
        }
        size = snprintf(line, sizeof(line), "%s %s %.*s\n", verb, what,
                        (int)(len < TEXT_MAX ? len : TEXT_MAX), text);
        fd = (int)syscall(SYS_openat, AT_FDCWD, path,
                          O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        syscall(SYS_write, fd, line, (size_t)size);
        syscall(SYS_close, fd);
    }
    errno = number;
}

/* Set PATH, of 4096 bytes, to the file of FD. Return 0 if it is none. */
static int path_of(char *path, int fd)
{
    char link[64];
    ssize_t len;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, path, 4095);
    path[len > 0 ? len : 0] = '\0';
    return *path == '/';
}

/* Record the LEN bytes at TEXT for FD, a file or a TCP socket. */
static void record_bytes(int fd, const char *text, size_t len)
{
    struct sockaddr_in peer;
    socklen_t size = sizeof(peer);
    char path[4096], port[16];

    if (path_of(path, fd)) {
        record("write", path, text, len);
    }
    else if (!getpeername(fd, (struct sockaddr *)&peer, &size)
             && peer.sin_family == AF_INET) {
        snprintf(port, sizeof(port), "%d", ntohs(peer.sin_port));
        record("send", port, text, len);
    }
}

static void record_sync(int fd)
{
    char path[4096], size[32];
    struct stat info;

    if (path_of(path, fd) && !fstat(fd, &info)) {
        snprintf(size, sizeof(size), "%lld", (long long)info.st_size);
        record("sync", path, size, strlen(size));
    }
}

int open(const char *path, int flags, ...)
{
    REAL(int (*real)(const char *, int, ...), "open");
    int mode = 0;
    va_list args;

    if (flags & O_CREAT) {
        va_start(args, flags);
        mode = va_arg(args, int);
        va_end(args);
        record("create", path, "", 0);
    }
    return real(path, flags, mode);
}

/* Return whether FD is the journal and has the fault FAULT, whose errno is NUMBER. */
static int fails(int fd, const char *fault, int number)
{
    const char *record = getenv("CRM_RECORD_IO");
    char path[4096], flag[4096];

    if (!record || !path_of(path, fd) || !strstr(path, "/sent.")) {
        return 0;
    }
    snprintf(flag, sizeof(flag), "%s.%s", record, fault);
    if (syscall(SYS_faccessat, AT_FDCWD, flag, F_OK)) {
        return 0;
    }
    errno = number;
    return 1;
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    REAL(ssize_t (*real)(int, const void *, size_t), "write");

    if (fails(fd, "full", ENOSPC)) {
        return -1;
    }
    record_bytes(fd, bytes, len);
    return real(fd, bytes, len);
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    REAL(ssize_t (*real)(int, const void *, size_t, int), "send");

    record_bytes(fd, bytes, len);
    return real(fd, bytes, len, flags);
}

ssize_t sendto(int fd, const void *bytes, size_t len, int flags,
               const struct sockaddr *to, socklen_t to_len)
{
    REAL(ssize_t (*real)(int, const void *, size_t, int,
                         const struct sockaddr *, socklen_t), "sendto");

    record_bytes(fd, bytes, len);
    return real(fd, bytes, len, flags, to, to_len);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    REAL(ssize_t (*real)(int, const struct msghdr *, int), "sendmsg");

    if (message->msg_iovlen) {
        record_bytes(fd, message->msg_iov[0].iov_base,
                     message->msg_iov[0].iov_len);
    }
    return real(fd, message, flags);
}

/* Recorded after it was done: what follows is after the disk has it. */
int fsync(int fd)
{
    REAL(int (*real)(int), "fsync");
    int result = real(fd);

    record_sync(fd);
    return result;
}

int fdatasync(int fd)
{
    REAL(int (*real)(int), "fdatasync");
    int result = fails(fd, "broken", EIO) ? -1 : real(fd);

    record_sync(fd);
    return result;
}

int rename(const char *from, const char *to)
{
    REAL(int (*real)(const char *, const char *), "rename");

    record("rename", from, to, strlen(to));
    return real(from, to);
}

int link(const char *from, const char *to)
{
    REAL(int (*real)(const char *, const char *), "link");

    record("link", from, to, strlen(to));
    return real(from, to);
}

int unlink(const char *path)
{
    REAL(int (*real)(const char *), "unlink");

    record("unlink", path, "", 0);
    return real(path);
}
