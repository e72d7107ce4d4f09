"use strict";
// What the tests with a browser share: a relay of their own, browsers, numbers read from pixels.
//
// Every wait has a bound that a slow machine does not reach. A failure prints the relay's last
// words and what the pages' consoles said. Sources are CommonJS: Node.js takes a test, a file
// without an extension, for nothing else.

const { spawn } = require("node:child_process");
const dgram = require("node:dgram");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const readline = require("node:readline");

const BUILD = process.env.BUILD ?? "build";
const CHROMIUM = "/usr/bin/chromium";
const LIMIT_MS = 280_000; // of a whole test
const LOG_LINES = 25;
const CAPTURE_MS = 10_000; // without a picture

const children = new Set(); // processes of ours that run
const consoles = []; // what pages said

function start(program, args, options = {}) {
	if (!fs.existsSync(program))
		throw new Error(`${program} is missing: make builds it`);
	const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
	child.ended = new Promise((resolve) => child.once("exit", (code, signal) => {
		children.delete(child);
		resolve({ code, signal });
	}));
	children.add(child);
	return child;
}

function bounded(promise, ms, what) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new Error(`after ${ms / 1000} s still not: ${what}`)), ms);
	});
	return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Starts a relay on free ports of 127.0.0.1 in a temporary folder.
class Relay {
	static async start(...flags) {
		return Relay.startWith("", ...flags);
	}

	// The same with settings: lines of YAML.
	static async startWith(yaml, ...flags) {
		const relay = new Relay();
		relay.folder = fs.mkdtempSync(path.join(os.tmpdir(), "sluice-browser-"));
		relay.log = [];
		const config = path.join(relay.folder, "sluice.yaml");
		fs.writeFileSync(config, `drain_ms: 0\n${yaml}`);
		relay.child = start(path.join(BUILD, "sluice"),
			["-c", config, ...["--http", "--udp"].filter((flag) => !flags.includes(flag))
				.flatMap((flag) => [flag, "127.0.0.1:0"]), ...flags]);
		readline.createInterface({ input: relay.child.stderr }).on("line", (line) => relay.log.push(line));
		const ready = new Promise((resolve) =>
			readline.createInterface({ input: relay.child.stdout }).once("line", resolve));
		Relay.all.push(relay);
		const ended = relay.child.ended.then((end) => `ended ${JSON.stringify(end)}`);
		const line = await bounded(Promise.race([ready, ended]), 30_000, "the relay is ready");
		const found = /^ready http=(\S+) /.exec(line);
		if (!found)
			throw new Error(`the relay did not start: ${line}`);
		relay.url = `http://${found[1]}`;
		return relay;
	}

	async get(where) {
		const answer = await fetch(this.url + where);
		if (!answer.ok)
			throw new Error(`${where}: ${answer.status}`);
		return answer.json();
	}

	// Summed over workers: {name: value}, of metrics without other labels.
	async metrics() {
		const sums = {};
		for (const line of (await (await fetch(`${this.url}/metrics`)).text()).split("\n")) {
			const found = /^(\w+)(?:\{worker="\d+"\})? (\S+)$/.exec(line);
			if (found)
				sums[found[1]] = (sums[found[1]] ?? 0) + Number(found[2]);
		}
		return sums;
	}

	// SIGTERM has to end it, with status 0.
	async stop() {
		this.child.kill("SIGTERM");
		const { code, signal } = await bounded(this.child.ended, 60_000, "the relay has ended");
		if (code !== 0)
			throw new Error(`the relay ended with ${code ?? signal}`);
		fs.rmSync(this.folder, { recursive: true, force: true });
	}
}
Relay.all = [];

// The impairment relay in front of a UDP port; its settings may change at any time.
class Impair {
	static async start(toPort, ...flags) {
		const impair = new Impair();
		impair.child = start(path.join(BUILD, "impair"),
			["--listen", "127.0.0.1:0", "--to", `127.0.0.1:${toPort}`, ...flags], { stdio: ["pipe", "pipe", "inherit"] });
		impair.lines = readline.createInterface({ input: impair.child.stdout })[Symbol.asyncIterator]();
		const { value } = await bounded(impair.lines.next(), 30_000, "impair is ready");
		impair.port = Number(/^ready listen=.*:(\d+)$/.exec(value)?.[1]);
		if (!impair.port)
			throw new Error(`impair did not start: ${value}`);
		return impair;
	}

	// One order; what was answered before the ok.
	async order(line) {
		this.child.stdin.write(`${line}\n`);
		for (let answer = ""; ;) {
			const { value } = await bounded(this.lines.next(), 30_000, `impair answers to ${line}`);
			if (value === "ok")
				return answer;
			if (!value?.startsWith("{"))
				throw new Error(`impair: ${value}`);
			answer = value;
		}
	}

	// With a ufrag: of that peer's link only.
	async set(settings, ufrag) {
		for (const [name, value] of Object.entries(settings))
			await this.order(`${ufrag ? `for ${ufrag} ` : ""}${name} ${value}`);
	}

	async stats() {
		return JSON.parse(await this.order("stats"));
	}

	async stop() {
		this.child.kill("SIGTERM");
		await bounded(this.child.ended, 30_000, "impair has ended");
	}
}

function freeUdpPort() {
	return new Promise((resolve, reject) => {
		const socket = dgram.createSocket("udp4");
		socket.once("error", reject);
		socket.bind(0, "127.0.0.1", () => {
			const { port } = socket.address();
			socket.close(() => resolve(port));
		});
	});
}

// --- Browsers ------------------------------------------------------------------------------------

// The pages do not show their connections; a test that counts needs them.
function keepConnections() {
	const Native = window.RTCPeerConnection;
	window.connections = [];
	window.RTCPeerConnection = class extends Native {
		constructor(...args) {
			super(...args);
			window.connections.push(this);
		}
	};
}

// `prepare(arg)`, if any, runs in the page before its own scripts.
async function browse(url, prepare, arg) {
	let chromium;
	try {
		({ chromium } = require("playwright-core"));
	} catch {
		throw new Error("playwright-core is missing: make modules installs it");
	}
	const browser = await chromium.launch({
		executablePath: CHROMIUM,
		headless: true,
		timeout: 60_000,
		handleSIGTERM: false, // run() ends what it started
		args: [
			"--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
			"--disable-component-update", "--disable-sync", "--no-proxy-server",
			"--autoplay-policy=no-user-gesture-required", "--allow-loopback-in-peer-connection",
			// A page nobody looks at draws and decodes like one that somebody does.
			"--disable-background-timer-throttling", "--disable-renderer-backgrounding",
			"--disable-backgrounding-occluded-windows",
		],
	});
	const page = await browser.newPage({ bypassCSP: Boolean(prepare) }); // what a test adds may need more than the pages
	const where = new URL(url).pathname;
	page.on("console", (message) => consoles.push(`${where}: ${message.text()}`));
	page.on("pageerror", (error) => consoles.push(`${where}: ${error.message}`));
	await page.addInitScript(keepConnections);
	if (prepare)
		await page.addInitScript(prepare, arg);
	await page.goto(url, { timeout: 60_000 });
	return page;
}

// --- What a viewer gets --------------------------------------------------------------------------

// Of the page's newest connection; null before there are any.
function counts(page) {
	return page.evaluate(async () => {
		const report = await window.connections.at(-1)?.getStats();
		const out = {};
		report?.forEach((s) => {
			if (s.type !== "inbound-rtp")
				return;
			out.atMs = s.timestamp;
			out[s.kind] = {
				frames: s.framesDecoded ?? 0,
				packets: s.packetsReceived,
				lost: s.packetsLost,
				energy: s.totalAudioEnergy ?? 0,
				seconds: s.totalSamplesDuration ?? 0,
				codec: report.get(s.codecId)?.mimeType ?? "",
			};
		});
		return out.video && out.audio ? out : null;
	});
}

// The next picture shown, scaled to 640x360: its brightness, byte by byte. It is drawn when the browser
// presents it: at any other time the element may have none to draw, which leaves the canvas empty.
async function capture(page) {
	const text = await page.evaluate(async (limitMs) => {
		const video = document.querySelector("video");
		const canvas = document.createElement("canvas");
		canvas.width = 640;
		canvas.height = 360;
		const g = canvas.getContext("2d", { willReadFrequently: true });
		for (const end = performance.now() + limitMs; performance.now() < end;) {
			await new Promise((resolve) => {
				video.requestVideoFrameCallback(resolve);
				setTimeout(resolve, limitMs);
			});
			g.drawImage(video, 0, 0, 640, 360);
			const { data } = g.getImageData(0, 0, 640, 360);
			if (data[3] === 0)
				continue;
			let out = "";
			for (let i = 0; i < data.length; i += 4)
				out += String.fromCharCode((data[i] + 2 * data[i + 1] + data[i + 2]) >> 2);
			return btoa(out);
		}
		return null;
	}, CAPTURE_MS);
	check(text !== null, `no picture for ${CAPTURE_MS / 1000} s`);
	return Buffer.from(text, "base64");
}

// The number in the row of 28 squares at (40, 300), each 20x24: white, black, 24 bits, the highest
// first, their parity, white. Null when there is no such row.
function numberIn(picture) {
	const bits = [];
	for (let square = 0; square < 28; square++) {
		let sum = 0;
		for (let y = 308; y < 316; y++)
			for (let x = 46; x < 54; x++)
				sum += picture[y * 640 + x + square * 20];
		bits.push(sum / 64 > 127 ? 1 : 0);
	}
	const number = bits.slice(2, 26).reduce((n, bit) => n * 2 + bit, 0);
	const ones = bits.slice(2, 26).filter((bit) => bit).length;
	const isRow = bits[0] === 1 && bits[1] === 0 && bits[26] === ones % 2 && bits[27] === 1;
	return isRow ? number : null;
}

// Samples until good() of one returns a true value, and returns that.
async function until(what, good, ms = 60_000) {
	const end = Date.now() + ms;
	for (;;) {
		const value = await good();
		if (value)
			return value;
		if (Date.now() > end)
			throw new Error(`after ${ms / 1000} s still not: ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
}

// Frames a second and audio energy over 5 s of the browser's own clock. A machine that is busy with
// something else for a moment gets other chances: the first good 5 s count.
async function playsWell(page, minFps) {
	const seen = [];
	for (let attempt = 0; attempt < 8; attempt++) {
		const before = await until("the viewer gets picture and sound", () => counts(page));
		const after = await until("5 s have passed", async () => {
			const now = await counts(page);
			return now && now.atMs - before.atMs >= 5000 ? now : null;
		});
		const seconds = (after.atMs - before.atMs) / 1000;
		const result = {
			fps: (after.video.frames - before.video.frames) / seconds,
			energy: after.audio.energy - before.audio.energy,
			codec: after.video.codec,
			lost: after.video.lost,
		};
		seen.push(result);
		if (result.fps >= minFps && result.energy > 0)
			return result;
	}
	throw new Error(`never ${minFps} frames a second and sound over 5 s: ${JSON.stringify(seen)}`);
}

// What read() finds in one of the next pictures. An encoder that has to save may blur a number beyond
// reading, here and there; a picture that is broken stays so until the next key frame.
async function legible(page, read) {
	let picture;
	for (let attempt = 0; attempt < 15; attempt++) {
		picture = await capture(page);
		const value = read(picture);
		if (value !== null)
			return value;
	}
	throw new Error(`15 pictures without a number, of brightness ${Math.min(...picture)} to ${Math.max(...picture)}`);
}

// Two numbers a second apart; the later has to be ahead. A machine that stood still for that second gets
// other chances.
async function risingNumbers(page, read, isAhead) {
	const seen = [];
	for (let attempt = 0; attempt < 5; attempt++) {
		const first = await legible(page, read);
		const firstAt = await page.evaluate(() => performance.now());
		await page.waitForFunction((at) => performance.now() - at >= 1000, firstAt);
		const second = await legible(page, read);
		seen.push([first, second]);
		if (isAhead(first, second))
			return { first, second };
	}
	throw new Error(`the number does not rise: ${JSON.stringify(seen)}`);
}

// --- The test ------------------------------------------------------------------------------------

function check(isTrue, what) {
	if (!isTrue)
		throw new Error(what);
}

// A page that is left ends its session; the browser's end alone would leave that to a timeout.
async function leave(relay, pages) {
	for (const page of pages)
		await page.goto("about:blank");
	await until("no session is left", async () => (await relay.get("/api/sessions")).length === 0, 20_000);
	for (const page of pages)
		await page.context().browser().close();
}

function abandon(error) {
	console.log(error.stack ?? String(error));
	for (const relay of Relay.all)
		console.log(`the relay's last words:\n    ${relay.log.slice(-LOG_LINES).join("\n    ")}`);
	if (consoles.length)
		console.log(`the pages said:\n    ${consoles.slice(-LOG_LINES).join("\n    ")}`);
	for (const child of children)
		child.kill("SIGKILL");
	for (const relay of Relay.all)
		fs.rmSync(relay.folder, { recursive: true, force: true });
	process.exit(1);
}

// Runs {name: async function} one after the other; with names as arguments, only those.
async function run(tests) {
	const names = process.argv.slice(2);
	process.on("SIGTERM", () => abandon(new Error("ended from outside")));
	setTimeout(() => abandon(new Error("the test's time is up")), LIMIT_MS).unref();
	try {
		for (const [name, test] of Object.entries(tests)) {
			if (names.length && !names.includes(name))
				continue;
			const began = Date.now();
			const result = await test();
			console.log(`${name} (${(Date.now() - began) / 1000} s) ${JSON.stringify(result ?? "")}`);
		}
	} catch (error) {
		abandon(error);
	}
	process.exit(0);
}

module.exports = { BUILD, Impair, Relay, browse, check, counts, freeUdpPort, leave, legible, numberIn, playsWell, risingNumbers, run, start, until };
