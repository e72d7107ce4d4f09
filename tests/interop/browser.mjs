// A headless browser that opens pages and runs expressions in them: Firefox over WebDriver BiDi,
// Chromium over the DevTools protocol. Neither needs a driver program.
//
// Profiles are left to whoever owns TMPDIR: processes of a browser outlive it for a moment.
// Every page gets `peers` (the RTCPeerConnections it made) and `patched` (the statuses that its PATCH
// requests were answered with) before its own scripts run.

import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import WebSocket from "ws";

const START_MS = 60_000;
const CALL_MS = 60_000;

// Fake devices without questions, real addresses in candidates, loopback as a network.
const FIREFOX_PREFS = {
	"media.navigator.streams.fake": true,
	"media.navigator.permission.disabled": true,
	"media.peerconnection.ice.obfuscate_host_addresses": false,
	"media.peerconnection.ice.loopback": true,
	"media.autoplay.default": 0,
	"media.autoplay.blocking_policy": 0,
	// Nothing but what a test asks for goes over a network.
	"app.update.enabled": false,
	"app.normandy.enabled": false,
	"browser.safebrowsing.malware.enabled": false,
	"browser.safebrowsing.phishing.enabled": false,
	"browser.safebrowsing.downloads.enabled": false,
	"browser.search.update": false,
	"browser.region.network.url": "",
	"browser.region.update.enabled": false,
	"browser.shell.checkDefaultBrowser": false,
	"datareporting.policy.dataSubmissionEnabled": false,
	"dom.push.connection.enabled": false,
	"extensions.update.enabled": false,
	"extensions.systemAddon.update.enabled": false,
	"extensions.getAddons.cache.enabled": false,
	"media.gmp-manager.updateEnabled": false,
	"media.gmp-manager.url": "",
	"network.captive-portal-service.enabled": false,
	"network.connectivity-service.enabled": false,
	"network.dns.disablePrefetch": true,
	"network.proxy.type": 0,
	"services.settings.server": "http://127.0.0.1:9/",
	"toolkit.telemetry.enabled": false,
};

const CHROMIUM_FLAGS = [
	"--headless=new", "--no-sandbox", "--no-first-run", "--no-default-browser-check", "--disable-gpu",
	"--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
	"--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream=fps=30",
	"--autoplay-policy=no-user-gesture-required", "--allow-loopback-in-peer-connection",
	"--disable-features=WebRtcHideLocalIpsWithMdns", "--remote-debugging-port=0", "about:blank",
];

const COLLECT = `
	window.peers = [];
	window.RTCPeerConnection = new Proxy(RTCPeerConnection, {
		construct(target, args) {
			const made = new target(...args);
			window.peers.push(made);
			return made;
		},
	});
	window.patched = [];
	window.fetch = new Proxy(fetch, {
		async apply(target, self, args) {
			const response = await Reflect.apply(target, self, args);
			if (args[1]?.method === "PATCH")
				window.patched.push(response.status);
			return response;
		},
	});`;

// Requests with a number and their answers over one WebSocket.
class Wire {
	constructor(socket) {
		this.socket = socket;
		this.calls = new Map();
		this.last = 0;
		socket.on("message", (text) => this.onMessage(JSON.parse(text)));
		socket.on("close", () => this.fail(new Error("the browser went away")));
	}

	static open(url) {
		return new Promise((resolve, reject) => {
			const socket = new WebSocket(url, { perMessageDeflate: false });
			socket.on("open", () => resolve(new Wire(socket)));
			socket.on("error", reject);
		});
	}

	call(method, params = {}, more = {}) {
		const id = ++this.last;
		return new Promise((resolve, reject) => {
			const timer = setTimeout(() => {
				this.calls.delete(id);
				reject(new Error(`${method}: no answer`));
			}, CALL_MS);
			this.calls.set(id, { resolve, reject, timer });
			this.socket.send(JSON.stringify({ id, method, params, ...more }));
		});
	}

	onMessage(message) {
		const call = this.calls.get(message.id);
		if (!call)
			return;
		this.calls.delete(message.id);
		clearTimeout(call.timer);
		if (message.error)
			call.reject(new Error(message.message ?? message.error.message ?? String(message.error)));
		else
			call.resolve(message.result);
	}

	fail(error) {
		for (const { reject, timer } of this.calls.values()) {
			clearTimeout(timer);
			reject(error);
		}
		this.calls.clear();
	}
}

class Browser {
	constructor(process, wire) {
		Object.assign(this, { process, wire });
	}

	async close() {
		const gone = new Promise((resolve) => this.process.once("exit", resolve));
		this.wire.socket.terminate();
		this.process.kill("SIGKILL");
		await gone;
	}
}

class Firefox extends Browser {
	async begin() {
		const { capabilities } = await this.wire.call("session.new", { capabilities: {} });
		this.version = `Firefox ${capabilities.browserVersion}`;
		await this.wire.call("script.addPreloadScript", { functionDeclaration: `() => {${COLLECT}}` });
	}

	async open(url) {
		const { context } = await this.wire.call("browsingContext.create", { type: "tab" });
		// Timers of a tab that is not in front fire once a second.
		await this.wire.call("browsingContext.activate", { context });
		await this.wire.call("browsingContext.navigate", { context, url, wait: "complete" });
		return new Page((expression) => this.evaluate(context, expression),
			() => this.wire.call("browsingContext.close", { context }));
	}

	async evaluate(context, expression) {
		const answer = await this.wire.call("script.evaluate", {
			expression: `Promise.resolve((${expression})).then((v) => JSON.stringify(v) ?? "null")`,
			target: { context }, awaitPromise: true,
		});
		if (answer.type !== "success")
			throw new Error(answer.exceptionDetails.text);
		return JSON.parse(answer.result.value);
	}
}

class Chromium extends Browser {
	async begin() {
		const { product } = await this.wire.call("Browser.getVersion");
		this.version = product.replace(/^\w+\//, "Chromium ");
	}

	async open(url) {
		const { targetId } = await this.wire.call("Target.createTarget", { url: "about:blank" });
		const { sessionId } = await this.wire.call("Target.attachToTarget", { targetId, flatten: true });
		const call = (method, params) => this.wire.call(method, params, { sessionId });
		await call("Page.enable");
		await call("Page.addScriptToEvaluateOnNewDocument", { source: COLLECT });
		await call("Page.navigate", { url });
		const page = new Page((expression) => this.evaluate(call, expression),
			() => this.wire.call("Target.closeTarget", { targetId }));
		await page.until(`location.href !== "about:blank" && document.readyState === "complete"`);
		return page;
	}

	async evaluate(call, expression) {
		const answer = await call("Runtime.evaluate", {
			expression: `Promise.resolve((${expression})).then((v) => JSON.stringify(v) ?? "null")`, awaitPromise: true,
		});
		if (answer.exceptionDetails)
			throw new Error(answer.exceptionDetails.exception?.description ?? answer.exceptionDetails.text);
		return JSON.parse(answer.result.value);
	}
}

export class Page {
	constructor(evaluate, close) {
		Object.assign(this, { evaluate, close });
	}

	// The first true value of the expression; `show` is evaluated for the error's text.
	async until(expression, limitMs = 45_000, show = "null") {
		const end = Date.now() + limitMs;
		for (;;) {
			const value = await this.evaluate(expression);
			if (value)
				return value;
			if (Date.now() > end)
				throw new Error(`not in ${limitMs / 1000} s: ${expression}; ${JSON.stringify(await this.evaluate(show))}`);
			await new Promise((resolve) => setTimeout(resolve, 200));
		}
	}
}

function command(kind, profile) {
	if (kind === "chromium")
		return ["chromium", [`--user-data-dir=${profile}`, ...CHROMIUM_FLAGS]];
	const prefs = Object.entries(FIREFOX_PREFS).map(([k, v]) => `user_pref(${JSON.stringify(k)}, ${JSON.stringify(v)});\n`);
	writeFileSync(join(profile, "user.js"), prefs.join(""));
	return ["firefox-esr", ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0", "about:blank"]];
}

// Both say on stderr where they listen.
function listeningAt(process) {
	return new Promise((resolve, reject) => {
		let text = "";
		const timer = setTimeout(() => reject(new Error(`the browser did not start: ${text.slice(-500)}`)), START_MS);
		process.on("error", reject);
		process.on("exit", (code) => reject(new Error(`the browser ended with ${code}: ${text.slice(-500)}`)));
		process.stderr.on("data", (chunk) => {
			text += chunk;
			const found = text.match(/listening on (ws:\/\/127\.0\.0\.1:\d+\S*)\s/);
			if (!found)
				return;
			clearTimeout(timer);
			resolve(found[1]);
			process.stderr.removeAllListeners("data").resume();
		});
	});
}

export async function launch(kind) {
	const profile = mkdtempSync(join(tmpdir(), `sluice-${kind}-`));
	const process = spawn(...command(kind, profile), { stdio: ["ignore", "ignore", "pipe"] });
	try {
		const url = await listeningAt(process);
		const wire = await Wire.open(kind === "firefox" ? `${url}/session` : url);
		const browser = new (kind === "firefox" ? Firefox : Chromium)(process, wire);
		await browser.begin();
		return browser;
	} catch (error) {
		process.kill("SIGKILL");
		throw error;
	}
}
