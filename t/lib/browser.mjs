// SPDX-License-Identifier: Apache-2.0
// browser.mjs: drives a headless Chromium through the DevTools protocol
//
// usage: node browser.mjs CHROMIUM PROFILE-DIR
// Reads commands from stdin, one JSON array a line, and answers each with a
// line of JSON, {"ok": value} or {"error": text}:
//   ["open", url]          load it, wait until it is there
//   ["size", width, height]
//   ["scheme", "dark"]     the colours that the user prefers, or "light"
//   ["media", "print"]     what the page is shown on; "" is the screen again
//   ["eval", expression]   its value in the page
//   ["click", selector]    a real click in the middle of the element
//   ["press", selector]    the same, then wait for the page that comes
//   ["type", selector, text]  replace what a field holds, by the keyboard
//   ["enter", selector]    the Enter key in a field, then wait for the page
//   ["insert", text]       what the keyboard writes where the focus is
//   ["key", name, shift]   a key: "Enter", "Escape", "Tab"
//   ["complaints"]         what the console has told of since the last "open":
//                          errors, warnings, what a policy forbade
//   ["store", folder]      where what a page gives to be stored goes
//   ["shot", file]         a picture of the whole page
//   ["tree"]               the accessibility tree: [[role, name], ...]
//   ["axe", file, selector] what axe-core, the script FILE, finds in the element
//                          that keeps people out: ["rule: element ...", ...]
// A selector "a >>> b" is b in the shadow tree of a.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [chromium, profile] = process.argv.slice(2);
const browser = spawn(chromium, ["--headless", "--no-sandbox",
    "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-pipe", `--user-data-dir=${profile}`, "about:blank"],
    { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const waiting = new Map();
const listeners = new Set();
let last = 0, session, rest = "";

browser.stdio[4].on("data", (data) => {
    const messages = (rest + data).split("\0");
    rest = messages.pop();
    for (const text of messages) {
        const message = JSON.parse(text);
        const call = waiting.get(message.id);
        waiting.delete(message.id);
        if (call && message.error) {
            call.reject(new Error(message.error.message));
        } else if (call) {
            call.resolve(message.result);
        } else {
            listeners.forEach((listener) => listener(message));
        }
    }
});
browser.on("exit", () => process.exit(1));

function send(method, params = {}) {
    const id = ++last;
    browser.stdio[3].write(JSON.stringify({ id, method, params,
        sessionId: session }) + "\0");
    return new Promise((resolve, reject) =>
        waiting.set(id, { resolve, reject }));
}

// Wait until the event METHOD comes after what ACTION does.
function after(method, action) {
    return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
            listeners.delete(listener);
            reject(new Error(`no ${method} within 10 s`));
        }, 10000);
        const listener = (message) => {
            if (message.method === method) {
                clearTimeout(timer);
                listeners.delete(listener);
                resolve(message.params);
            }
        };
        listeners.add(listener);
        action().catch(reject);
    });
}

async function evaluate(expression) {
    const { result, exceptionDetails } = await send("Runtime.evaluate",
        { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) {
        throw new Error(exceptionDetails.exception?.description
            ?? exceptionDetails.text);
    }
    return result.value;
}

// An expression for the element SELECTOR.
function find(selector) {
    return `${JSON.stringify(selector.split(" >>> "))}.reduce((at, one) =>
        (at.shadowRoot ?? at).querySelector(one), document)`;
}

async function click(selector) {
    const at = await evaluate(`(() => {
        const it = ${find(selector)};
        it.scrollIntoView({ block: "center" });
        const box = it.getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    })()`);
    for (const type of ["mousePressed", "mouseReleased"]) {
        await send("Input.dispatchMouseEvent", { type, x: at[0], y: at[1],
            button: "left", clickCount: 1 });
    }
}

const codes = { Enter: 13, Escape: 27, Tab: 9 };

async function key(name, shift) {
    for (const type of ["keyDown", "keyUp"]) {
        await send("Input.dispatchKeyEvent", { type, key: name, code: name,
            windowsVirtualKeyCode: codes[name], modifiers: shift ? 8 : 0,
            text: name === "Enter" ? "\r" : undefined });
    }
}

let complaints = [];
listeners.add(({ method, params }) => {
    if (method === "Runtime.exceptionThrown") {
        complaints.push(params.exceptionDetails.exception?.description
            ?? params.exceptionDetails.text);
    } else if (method === "Runtime.consoleAPICalled"
            && /^(?:error|warning|assert)$/.test(params.type)) {
        complaints.push(params.args.map((arg) => arg.value).join(" "));
    } else if (method === "Log.entryAdded"
            && /^(?:error|warning)$/.test(params.entry.level)) {
        complaints.push(`${params.entry.text} ${params.entry.url ?? ""}`);
    }
});

const loaded = "Page.loadEventFired";
const commands = {
    open(url) {
        complaints = [];
        return after(loaded, () => send("Page.navigate", { url }));
    },
    size: (width, height) => send("Emulation.setDeviceMetricsOverride",
        { width, height, deviceScaleFactor: 1, mobile: false }),
    scheme: (value) => send("Emulation.setEmulatedMedia",
        { features: [{ name: "prefers-color-scheme", value }] }),
    media: (media) => send("Emulation.setEmulatedMedia", { media }),
    eval: evaluate,
    click,
    press: (selector) => after(loaded, () => click(selector)),
    async type(selector, text) {
        await evaluate(`(() => {
            const it = ${find(selector)};
            it.focus();
            it.select();
        })()`);
        await send("Input.insertText", { text });
    },
    enter: (selector) => after(loaded, async () => {
        await evaluate(`${find(selector)}.focus()`);
        await key("Enter");
    }),
    insert: (text) => send("Input.insertText", { text }),
    key,
    complaints: () => complaints,
    store: (folder) => send("Browser.setDownloadBehavior",
        { behavior: "allow", downloadPath: folder }),
    async shot(file) {
        const { cssContentSize: size } = await send("Page.getLayoutMetrics");
        const { data } = await send("Page.captureScreenshot", {
            captureBeyondViewport: true, clip: { x: 0, y: 0, scale: 1,
                width: size.width, height: size.height } });
        writeFileSync(file, Buffer.from(data, "base64"));
    },
    async tree() {
        const { nodes } = await send("Accessibility.getFullAXTree");
        return nodes.filter((node) => !node.ignored).map((node) =>
            [node.role?.value ?? "", node.name?.value ?? ""]);
    },
    async axe(file, selector) {
        await evaluate(`void (() => { ${readFileSync(file, "utf8")} })()`);
        const { violations } = await evaluate(`axe.run(${
            JSON.stringify(selector)}, { resultTypes: ["violations"] })`);
        return violations.map(({ id, nodes }) => `${id}: ${
            nodes.map((node) => node.target.flat().join(" >>> ")).join(", ")}`);
    },
};

const { targetInfos } = await send("Target.getTargets");
const { sessionId } = await send("Target.attachToTarget", { flatten: true,
    targetId: targetInfos.find((info) => info.type === "page").targetId });
session = sessionId;
await send("Page.enable");
await send("Accessibility.enable");
await send("Runtime.enable");
await send("Log.enable");
for await (const line of createInterface({ input: process.stdin })) {
    const [name, ...args] = JSON.parse(line);
    try {
        const value = await commands[name](...args);
        console.log(JSON.stringify({ ok: value ?? null }));
    } catch (error) {
        console.log(JSON.stringify({ error: error.message }));
    }
}
browser.removeAllListeners("exit");
session = undefined;
send("Browser.close").catch(() => {});
const hard = setTimeout(() => browser.kill("SIGKILL"), 5000);
browser.on("exit", () => clearTimeout(hard));
