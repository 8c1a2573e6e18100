// SPDX-License-Identifier: Apache-2.0
// crmapi-chat.js: the chat button of web pages (docs/chat.md)
(() => {
"use strict";

// An element of the page with this name would be document.currentScript: who writes
// comments there would decide which server gets what visitors say.
const script = Reflect.get(Document.prototype, "currentScript", document);
if (!script || !script.dataset.agent || window.crmapiChat === true) {
    return;
}
window.crmapiChat = true;

const options = script.dataset;
const base = new URL("./" + encodeURIComponent(options.agent) + "/",
    script.src).href;
const storageKey = "crmapi-chat:" + base;
const POLL_SECONDS = 25;

// What is important here wins over the rules that a page has for its own elements,
// such as "div:empty { display: none }".
const css = `
:host {
    all: initial !important;
    --color: var(--crmapi-chat-color, var(--agent-color, #1d4ed8)) !important;
    --on-color: var(--crmapi-chat-on-color, var(--agent-on-color, #fff))
        !important;
    --bg: var(--crmapi-chat-background, #fff) !important;
    --fg: var(--crmapi-chat-text, #1f2937) !important;
    --gap: var(--crmapi-chat-offset, 20px) !important;
    position: fixed !important;
    z-index: var(--crmapi-chat-z-index, 2147483000) !important;
    inset-block-end: var(--gap) !important;
    inset-inline-end: var(--gap) !important;
    font: var(--crmapi-chat-font, 16px/1.45 system-ui, sans-serif) !important;
    color: var(--fg) !important;
    pointer-events: none !important;
}
.launch, .panel { pointer-events: auto; }
:host([hidden]) { display: none !important; }
@media print { :host { display: none !important; } }
:host([data-position=start]) { inset-inline: var(--gap) auto !important; }
:host([data-position=left]) { left: var(--gap) !important;
    right: auto !important; }
:host([data-position=right]) { left: auto !important;
    right: var(--gap) !important; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
a, button, textarea { font: inherit; color: inherit; }
button { cursor: pointer; border: 1px solid transparent; }
:focus-visible { outline: 3px solid var(--fg); outline-offset: 2px; }
.launch {
    display: block;
    margin-inline-start: auto;
    min-width: 56px;
    max-width: calc(100vw - 2 * var(--gap));
    min-height: 56px;
    padding: 4px 20px;
    overflow-wrap: anywhere;
    border-radius: 28px;
    background: var(--color);
    color: var(--on-color);
    box-shadow: 0 4px 14px rgba(0, 0, 0, .3);
}
.panel {
    display: flex;
    flex-direction: column;
    width: min(var(--crmapi-chat-width, 370px), calc(100vw - 2 * var(--gap)));
    height: min(var(--crmapi-chat-height, 560px), calc(100vh - 110px));
    height: min(var(--crmapi-chat-height, 560px), calc(100dvh - 110px));
    margin-block-end: 12px;
    border: 1px solid rgba(0, 0, 0, .2);
    border-radius: var(--crmapi-chat-radius, 14px);
    background: var(--bg);
    box-shadow: 0 8px 30px rgba(0, 0, 0, .25);
    overflow: hidden;
}
.head {
    display: flex;
    align-items: center;
    gap: 10px;
    padding: 10px 14px;
    background: var(--color);
    color: var(--on-color);
}
.head :focus-visible { outline-color: var(--on-color); }
.head h2 {
    display: -webkit-box;
    flex: 1;
    margin: 0;
    font-size: 1.05em;
    overflow: hidden;
    overflow-wrap: anywhere;
    -webkit-box-orient: vertical;
    -webkit-line-clamp: 2;
}
.head img { flex: none; width: 34px; height: 34px; border-radius: 50%;
    object-fit: cover; }
.close { min-width: 34px; height: 34px; background: none; font-size: 1.4em; }
.log {
    flex: 1;
    display: flex;
    flex-direction: column;
    align-items: flex-start;
    padding: 14px;
    overflow-y: auto;
    overscroll-behavior: contain;
}
.log:focus-visible { outline-offset: -3px; }
.log p {
    position: relative;
    flex: none;
    max-width: 85%;
    margin: 0 0 8px;
    padding: 8px 12px;
    border: 1px solid transparent;
    border-radius: 12px;
    background: var(--crmapi-chat-bubble, #f0f1f4);
    white-space: pre-wrap;
    overflow-wrap: anywhere;
}
.log .user {
    align-self: flex-end;
    background: var(--color);
    color: var(--on-color);
}
.log .pending { opacity: .75; }
.log .failed { background: #fff; color: #b00020; border-color: #b00020; }
.file {
    display: block;
    max-width: 100%;
    margin: 6px 0 0;
    padding: 4px 8px;
    border: 1px solid;
    border-radius: 8px;
    background: none;
    text-align: start;
    text-decoration: underline;
    overflow-wrap: anywhere;
}
.name { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
.status { padding: 0 14px; font-size: .85em; }
form { display: flex; gap: 8px; padding: 10px 14px 14px; }
textarea {
    flex: 1;
    min-width: 0;
    height: 64px;
    padding: 8px;
    border: 1px solid #6b7280;
    border-radius: 8px;
    background: var(--bg);
    resize: none;
}
textarea:placeholder-shown { direction: inherit; }
form button { max-width: 45%; padding: 0 16px; border-radius: 8px;
    background: var(--color); color: var(--on-color); overflow-wrap: anywhere; }
/* A telephone that lies, a keyboard, much zoom: the room is the dialog's. */
@media (max-height: 420px) {
    .panel {
        height: min(var(--crmapi-chat-height, 560px), 100vh - 2 * var(--gap));
        height: min(var(--crmapi-chat-height, 560px), 100dvh - 2 * var(--gap));
        margin: 0;
    }
    .panel:not([hidden]) + .launch { display: none; }
    form { padding: 8px 14px; }
    textarea { height: 44px; }
}
@media (prefers-reduced-motion: no-preference) {
    .panel { animation: rise .15s ease-out; }
    @keyframes rise { from { opacity: 0; transform: translateY(10px); } }
}`;

// ---- state stored in the browser -------------------------------------------

let memory = {};

function recall() {
    try {
        return JSON.parse(localStorage.getItem(storageKey)) || memory;
    } catch {
        return memory;
    }
}

function remember(change) {
    memory = Object.assign(recall(), change);
    try {
        localStorage.setItem(storageKey, JSON.stringify(memory));
    } catch {
        // without storage a chat ends with its page
    }
}

// What is not sent yet, also by a page that this window has left since.
function recallUnsent() {
    try {
        return JSON.parse(sessionStorage.getItem(storageKey)) || [];
    } catch {
        return [];
    }
}

function rememberUnsent() {
    try {
        sessionStorage.setItem(storageKey, JSON.stringify(queue));
    } catch {
        // without storage it is sent by this page, or by none
    }
}

// ---- requests --------------------------------------------------------------

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Wait after TRIES without an answer, or until there is a connection again.
const retry = (tries) => new Promise((resolve) => {
    const done = () => {
        clearTimeout(timer);
        removeEventListener("online", done);
        resolve();
    };
    const timer = setTimeout(done, Math.min(30000, 1000 * 2 ** tries)
        * (0.75 + Math.random() / 2));
    addEventListener("online", done);
});
const pause = (failure, tries) =>
    failure.delay ? sleep(failure.delay) : retry(tries);

// Returns the data of a response. Errors have a status (0: none) and a delay.
async function call(method, path, body, controller = new AbortController()) {
    const headers = {};
    if (body) {
        headers["Content-Type"] = "application/json";
    }
    if (path !== "start") {
        headers.Authorization = "Bearer " + token;
    }
    const timer = setTimeout(() => controller.abort(),
        (POLL_SECONDS + 15) * 1000);
    const failure = new Error(path);
    try {
        const response = await fetch(base + path, { method, headers,
            body: body && JSON.stringify(body), credentials: "omit",
            cache: "no-store", referrerPolicy: "no-referrer",
            signal: controller.signal });
        if (response.ok) {
            return (await response.json()).data;
        }
        failure.status = response.status;
        failure.delay = 1000 * response.headers.get("Retry-After");
    } catch {
        failure.status = 0;
    } finally {
        clearTimeout(timer);
    }
    throw failure;
}

const lasting = ({ status }) => status >= 400 && status < 500 && status !== 408
    && status !== 429;

// ---- the page --------------------------------------------------------------

function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    Object.keys(attributes).forEach((name) =>
        node.setAttribute(name, attributes[name]));
    node.append(...children);
    return node;
}

const title = options.title || "Chat";
const launch = make("button", { type: "button", class: "launch",
    "aria-expanded": "false", "aria-controls": "panel" }, title);
const heading = make("h2", { id: "title" }, title);
const avatar = make("img", { alt: "", hidden: "" });
const close = make("button", { type: "button", class: "close",
    "aria-label": options.close || "Close" }, "\u00d7");
const log = make("div", { class: "log", role: "log", tabindex: "0",
    "aria-live": "polite", "aria-label": options.log || "Messages" });
const status = make("div", { class: "status", role: "status" });
const field = make("textarea", { dir: "auto", maxlength: "4000",
    "aria-label": options.write || "Write a message",
    placeholder: options.write || "Write a message" });
const submit = make("button", { type: "submit" }, options.send || "Send");
const form = make("form", {}, field, submit);
const panel = make("div", { id: "panel", class: "panel", role: "dialog",
    "aria-labelledby": "title", hidden: "" },
    make("div", { class: "head" }, avatar, heading, close), log, status, form);
// Turbo leaves what is permanent in a page that it morphs.
const host = make("div", { "data-position": options.position || "end",
    "data-turbo-permanent": "" });
const root = host.attachShadow({ mode: "open" });
root.append(panel, launch);
try {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    root.adoptedStyleSheets = [sheet];
} catch {
    // browsers older than 2023 need style-src 'unsafe-inline'
    root.append(make("style", {}, css));
}

const shown = new Map();        // messages by id: {at, node, theirs}
const pending = new Map();      // nodes of unsent messages, by client_id
let agentName = title;
let newest = "";                // when the last message was written, and its id

// Black or white, whichever has more contrast with the color of the button.
function contrast() {
    const color = getComputedStyle(launch).backgroundColor;
    if (color.startsWith("rgb")) {
        const rgb = color.match(/[\d.]+/g);
        const light = rgb.slice(0, 3).map((c) => c / 255).map((c) =>
            c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        const y = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
        host.style.setProperty("--agent-on-color", y > 0.179 ? "#000" : "#fff");
    }
}

function showAgent(agent) {
    agentName = agent.name || title;
    heading.textContent = options.title || agentName;
    if (agent.color && CSS.supports("color", agent.color)) {
        host.style.setProperty("--agent-color", agent.color);
    }
    contrast();
    if (/^https?:/.test(agent.avatar || "")) {
        avatar.onload = () => { avatar.hidden = false; };
        avatar.src = agent.avatar;
    }
}

// Show how much was said since the visitor looked, in this window or another.
function showUnread() {
    const read = recall().read || "";
    const unread = panel.hidden ? [...shown.values()].filter((message) =>
        message.theirs && message.at > read).length : 0;
    launch.textContent = unread ? title + " (" + unread + ")" : title;
}

// A URL ends before punctuation, what cannot be seen, quotes, and a bracket that was
// not opened in it.
const out = "\\s()<>`\\p{Cf}«»‚“-‟…‹›"
    + "\\u3000-\\u303f\\uff00-\\uffef";
const part = "(?:\\([^" + out + "]*\\)|[^" + out;
const urls = RegExp("(https?://" + part + "])*" + part
    + ".,;:!?'‘’\"*|\\]]))", "iu");

function bubble(role, text, author) {
    const user = role === "user";
    const who = user ? options.you || "You" : author || agentName;
    return make("p", { class: role, dir: "auto" },
        make("span", { class: "name", dir: "auto" }, who + ": "),
        make("span", {}, ...user ? [text] : text.split(urls).map((url, i) =>
            i % 2 ? make("a", { href: url, target: "_blank",
                rel: "noreferrer" }, url) : url)));
}

// Have the browser store the file ATTACHMENT of a message, never show it.
async function save(attachment) {
    try {
        const response = await fetch(base + "attachments/" + attachment.id, {
            headers: { Authorization: "Bearer " + token }, credentials: "omit",
            cache: "no-store", referrerPolicy: "no-referrer" });
        if (!response.ok) {
            throw new Error(response.status);
        }
        const url = URL.createObjectURL(new Blob([await response.arrayBuffer()],
            { type: "application/octet-stream" }));
        make("a", { href: url, download: attachment.filename || "file" })
            .click();
        setTimeout(() => URL.revokeObjectURL(url), 60000);
        status.textContent = "";
    } catch {
        status.textContent = options.offline || "Not connected";
    }
}

function fileButton(attachment) {
    const size = Math.ceil(attachment.size / 1024);
    const button = make("button", { type: "button", class: "file", dir: "auto" },
        make("span", { class: "name", dir: "auto" },
            (options.file || "Save") + ": "),
        (attachment.filename || "file") + " (" + size + " KiB)");
    button.addEventListener("click", () => save(attachment));
    return button;
}

// Whether the end of the messages is seen. Then it stays in sight when more
// comes, or a keyboard takes room. Who reads what was before is left there.
let low = true, size = "";
const sizeNow = () => log.clientWidth + " " + log.clientHeight;

function scrollDown() {
    log.scrollTop = log.scrollHeight;
    low = true;
}

log.addEventListener("scroll", () => {
    if (size === sizeNow()) {       // else nobody has scrolled: it was resized
        low = log.scrollHeight - log.scrollTop - log.clientHeight < 30;
    }
});
if (window.ResizeObserver) {
    new ResizeObserver(() => {
        size = sizeNow();
        if (low) {
            scrollDown();
        }
    }).observe(log);
}

// Show MESSAGES in order of time, without duplicates.
function show(messages) {
    messages.forEach((message) => {
        const sent = pending.get(message.client_id);
        if (sent) {
            sent.remove();
            pending.delete(message.client_id);
        }
        if (shown.has(message.id)) {
            return;
        }
        const at = message.created_at + message.id;
        const node = bubble(message.role, message.content, message.author);
        node.append(...(message.attachments || []).map(fileButton));
        let next = null, nextAt = "";
        shown.forEach((other) => {
            if (other.at > at && (!next || other.at < nextAt)) {
                next = other.node;
                nextAt = other.at;
            }
        });
        if (!next && pending.size) {
            next = pending.values().next().value;
        }
        log.insertBefore(node, next);
        shown.set(message.id, { at, node, theirs: message.role !== "user" });
        newest = at > newest ? at : newest;
    });
    showUnread();
    if (low) {
        scrollDown();
    }
}

// ---- a conversation --------------------------------------------------------

let starting = null, started = false, greeted = false;
let token = recall().token || "";
let cursor = recall().cursor || "0";    // of this window only

// Continue as VISITOR, whose messages up to the cursor AT are shown.
function become(visitor, at) {
    token = visitor;
    cursor = at;
}

// Have the next page go on behind what the visitor has looked at.
function rememberRead() {
    const read = recall().read || "";
    if (!panel.hidden) {
        remember({ cursor, read: newest > read ? newest : read });
    }
}

async function begin() {
    const state = recall();
    const data = await call("POST", "start",
        state.token ? { visitor: state.token } : {});
    become(data.visitor, data.cursor);
    remember({ token, agent: data.agent,
        begun: state.token && state.begun || data.messages.length > 0 });
    showAgent(data.agent);
    if (!greeted && data.agent.greeting) {
        log.prepend(bubble("assistant", data.agent.greeting));
        greeted = true;
    }
    show(data.messages);
    rememberRead();
    started = true;
}

// Start the chat, once; retry until that succeeds.
function start() {
    starting = starting || (async () => {
        log.setAttribute("aria-busy", "true");
        for (let tries = 0; !started; tries++) {
            try {
                await begin();
                status.textContent = "";
            } catch (failure) {
                status.textContent = options.offline || "Not connected";
                if (lasting(failure)) {
                    break;
                }
                await pause(failure, tries);
            }
        }
        log.removeAttribute("aria-busy");
        starting = null;
    })();
    return starting;
}

// The token is no longer valid: get a new one and show its messages.
function restart() {
    become("", "0");
    remember({ token, cursor, begun: false });
    started = false;
    return start();
}

let polling = false, controller = null;
const awake = () => !document.hidden && token
    && (!panel.hidden || recall().begun);

async function poll() {
    if (polling) {
        return;
    }
    polling = true;
    for (let tries = 0; awake();) {
        controller = new AbortController();
        const asker = token;
        try {
            const data = await call("GET", "messages?wait=" + POLL_SECONDS
                + "&after=" + cursor, null, controller);
            show(data.messages);
            if (token === asker && cursor !== data.cursor) {
                cursor = data.cursor;
                rememberRead();
            }
            tries = 0;
            await sleep(1000 * data.retry_after);
        } catch (failure) {
            if (failure.status === 401) {
                await restart();
            } else if (lasting(failure)) {
                break;
            }
            if (!controller.signal.aborted) {
                await pause(failure, tries++);
            }
        }
    }
    polling = false;
}

const queue = recallUnsent();
let sending = false;

// Send queued messages one by one, each until it succeeds.
async function flush() {
    if (sending) {
        return;
    }
    sending = true;
    await start();
    for (let tries = 0, restarts = 0; queue.length;) {
        try {
            show([await call("POST", "messages", queue[0])]);
            remember({ begun: true });
            queue.shift();
            rememberUnsent();
            tries = restarts = 0;
            status.textContent = "";
        } catch (failure) {
            if (failure.status === 401 && restarts++ === 0) {
                await restart();
            } else if (lasting(failure)) {
                const message = queue.shift();
                rememberUnsent();
                const node = pending.get(message.id);
                if (node) {     // else poll() has shown it: it was stored
                    node.className = "user failed";
                    pending.delete(message.id);
                    field.value = field.value || message.content;
                    status.textContent = options.failed || "Not sent";
                }
            } else {
                status.textContent = options.offline || "Not connected";
                await pause(failure, tries++);
            }
        }
    }
    sending = false;
    poll();
}

function showPending(message) {
    const node = bubble("user", message.content);
    node.classList.add("pending");
    pending.set(message.id, node);
    log.append(node);
    scrollDown();
}

function send() {
    // a browser may have cut an emoji in two at the maximum
    const content = field.value.replace(/\p{Cs}/gu, "").trim();
    if (!content) {
        return;
    }
    const id = Array.from(crypto.getRandomValues(new Uint8Array(16)),
        (byte) => byte.toString(16).padStart(2, "0")).join("");
    field.value = "";
    queue.push({ id, content,
        page_url: location.href.split(/[?#]/)[0].slice(0, 2048) });
    rememberUnsent();
    showPending(queue[queue.length - 1]);
    flush();
}

// ---- user actions ----------------------------------------------------------

function toggle(open) {
    panel.hidden = !open;
    launch.setAttribute("aria-expanded", String(open));
    if (!open) {
        launch.focus();
        return;
    }
    rememberRead();
    showUnread();
    scrollDown();
    field.focus();
    start().then(poll);
}

launch.addEventListener("click", () => toggle(panel.hidden));
close.addEventListener("click", () => toggle(false));
// Keys and focus are the chat's alone: a page does not see that they are of a text
// field, and takes a letter for one of its shortcuts, or the focus back to its dialog.
["keydown", "keypress", "keyup", "focusin"].forEach((type) =>
    panel.addEventListener(type, (event) => event.stopPropagation()));
// Whether the key is the input method's. Safari ends a composition before it tells of
// the key that did so, whose code is 229.
const composing = (event) => event.isComposing || event.keyCode === 229;
panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !composing(event)) {
        toggle(false);
    }
});
field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !composing(event)) {
        event.preventDefault();
        send();
    }
});
// The click, since a frame's sandbox may keep forms from being submitted.
submit.addEventListener("click", (event) => {
    event.preventDefault();
    send();
});
// Another window may have started a chat: use the same visitor. A page that the
// browser has put aside is not told of it.
function adopt() {
    const state = recall();
    if (state.token && token !== state.token) {
        become(state.token, "0");
    }
    showUnread();
    poll();
}
document.addEventListener("visibilitychange", () => {
    if (document.hidden && controller) {
        controller.abort();
    }
    adopt();
});
addEventListener("storage", (event) => {
    if (event.key === storageKey) {
        adopt();
    }
});

// Be in the page, also in the body by which a page replaces its own (Turbo, Astro).
const observer = new MutationObserver(settle);
function settle() {
    if (!host.isConnected && document.body) {
        document.body.append(host);
        scrollDown();
    }
    [document, document.documentElement].forEach((node) =>
        observer.observe(node, { childList: true }));
}

function attach() {
    settle();
    if (recall().agent) {
        showAgent(recall().agent);
    }
    contrast();
    queue.forEach(showPending);
    if (queue.length) {
        flush();
    } else {
        poll();
    }
}

if (document.body) {
    attach();
} else {
    document.addEventListener("DOMContentLoaded", attach);
}
})();
