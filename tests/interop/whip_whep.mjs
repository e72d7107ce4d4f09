// Third-party JavaScript clients in a browser, from a page of another origin than the relay's:
// library=whip-whep|eyevinn browser=chromium|firefox role=publish|play url= stream= codec=
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { run } from "./browser_client.mjs";
import { options } from "./client.mjs";

const require = createRequire(import.meta.url);
const resolve = (name) => join(import.meta.dirname, "node_modules", name);
const endpoint = `${options.url}/${options.role === "publish" ? "whip" : "whep"}/${options.stream}`;

// CommonJS modules by the name they are required by, for a page.
function bundle(entry) {
	const modules = new Map();
	const add = (name, path) => {
		if (modules.has(name))
			return;
		const source = readFileSync(path, "utf8");
		modules.set(name, source);
		for (const [, wanted] of source.matchAll(/require\(['"]([^'"]+)['"]\)/g))
			add(wanted, wanted.startsWith(".") ? require.resolve(join(dirname(path), wanted)) : require.resolve(`${wanted}/`));
	};
	add(entry.name, entry.path);
	const table = [...modules].map(([name, source]) =>
		`${JSON.stringify(name)}: (module, exports, require) => {${source}\n}`).join(",\n");
	return `const table = {${table}}, made = {};
		const require = (name) => {
			if (!made[name]) {
				made[name] = { exports: {} };
				table[name](made[name], made[name].exports, require);
			}
			return made[name].exports;
		};
		export const { WHIPClient } = require(${JSON.stringify(entry.name)});`;
}

// What every script here does with its library: window.client and, once it is set up, window.done.
const CODEC = `
	const only = (pc) => {
		for (const t of pc.getTransceivers().filter((t) => t.sender.track?.kind === "video" || t.receiver.track.kind === "video")) {
			const all = (t.direction === "recvonly" ? RTCRtpReceiver : RTCRtpSender).getCapabilities("video").codecs;
			t.setCodecPreferences(all.filter((c) => [${JSON.stringify(`video/${options.codec}`)}, "video/rtx"].includes(c.mimeType.toLowerCase())));
		}
	};`;
const CAPTURE = `await navigator.mediaDevices.getUserMedia({ audio: true, video: { width: 640, height: 360 } })`;
const SCRIPTS = {
	"whip-whep publish": `
		import { WHIPClient } from "/whip-whep/whip.js";
		const stream = ${CAPTURE}, pc = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
		for (const track of stream.getTracks())
			pc.addTransceiver(track, { direction: "sendonly", streams: [stream] });
		only(pc);
		window.client = new WHIPClient();
		await client.publish(pc, ${JSON.stringify(endpoint)});`,
	"whip-whep play": `
		import { WHEPClient } from "/whip-whep/whep.js";
		const pc = new RTCPeerConnection({ bundlePolicy: "max-bundle" }), stream = new MediaStream();
		for (const kind of ["audio", "video"])
			pc.addTransceiver(kind, { direction: "recvonly" });
		pc.ontrack = ({ track }) => {
			stream.addTrack(track);
			document.querySelector("video").srcObject = stream;
		};
		window.client = new WHEPClient();
		await client.view(pc, ${JSON.stringify(endpoint)});`,
	"eyevinn publish": `
		import { WHIPClient } from "/eyevinn.js";
		const stream = ${CAPTURE};
		window.client = new WHIPClient({ endpoint: ${JSON.stringify(endpoint)}, opts: { iceServers: [] } });
		await client.ingest(stream);
		client.stop = () => client.destroy();`,
};

const page = `<!doctype html><meta charset="utf-8"><title>client</title><body><video autoplay></video>
<script>addEventListener("unhandledrejection", (e) => window.failed = String(e.reason));
addEventListener("error", (e) => window.failed = e.message);</script>
<script type="module">${CODEC}${SCRIPTS[`${options.library} ${options.role}`]}
window.done = true;</script>`;

const server = createServer((request, response) => {
	const isScript = request.url.endsWith(".js");
	response.setHeader("Content-Type", isScript ? "text/javascript" : "text/html");
	if (request.url === "/eyevinn.js")
		response.end(bundle({ name: "client", path: require.resolve("@eyevinn/whip-web-client") }));
	else if (/^\/whip-whep\/whe?ip\.js$|^\/whip-whep\/whep\.js$/.test(request.url))
		response.end(readFileSync(resolve(request.url.slice(1))));
	else
		response.end(page);
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));

const { version } = JSON.parse(readFileSync(resolve(`${options.library === "eyevinn" ? "@eyevinn/whip-web-client" : "whip-whep"}/package.json`)));
await run({
	version,
	open: (browser) => browser.open(`http://127.0.0.1:${server.address().port}/`),
	restart: options.library === "whip-whep" && ((page) => page.evaluate("client.restart().then(() => true)")),
	end: (page) => page.evaluate("client.stop().then(() => true)"),
});
