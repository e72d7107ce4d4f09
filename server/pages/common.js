// What the publish and the watch page share: one WHIP or WHEP session, its numbers, the page.

const GATHER_MS = 400;
const ASK_MS = 1500; // between questions to the relay why nothing connects

export const byId = (id) => document.getElementById(id);

// The last part of the address, checked by the server already.
export const streamName = () => location.pathname.split("/").pop();

// ?token= or #token=; the fragment never leaves the browser.
export function parameter(name) {
	const query = new URLSearchParams(location.search);
	const fragment = new URLSearchParams(location.hash.slice(1));
	return fragment.get(name) ?? query.get(name) ?? "";
}

export class RelayError extends Error {
	constructor(message, status = 0, retryAfter = 0) {
		super(message);
		this.status = status;
		this.retryAfter = retryAfter;
	}
}

async function errorOf(response) {
	let reason = `The relay answered ${response.status}.`;
	try {
		reason = (await response.json()).detail || reason;
	} catch {
		// No problem document: the status has to do.
	}
	return new RelayError(reason, response.status, Number(response.headers.get("Retry-After")) || 0);
}

async function request(url, options) {
	let response;
	try {
		response = await fetch(url, options);
	} catch {
		throw new RelayError("The relay cannot be reached.");
	}
	if (!response.ok)
		throw await errorOf(response);
	return response;
}

function iceServersOf(link) {
	const pattern =
		/<((?:stun|turn)s?:[^>]+)>; rel="ice-server"(?:; username="([^"]*)"; credential="([^"]*)")?/g;
	return [...(link ?? "").matchAll(pattern)].map(([, urls, username, credential]) =>
		username === undefined ? { urls } : { urls, username, credential });
}

function gathered(pc) {
	return new Promise((resolve) => {
		const done = () => pc.iceGatheringState === "complete" && resolve();
		pc.addEventListener("icegatheringstatechange", done);
		setTimeout(resolve, GATHER_MS);
		done();
	});
}

// One session with the relay. open() adds the tracks through `prepare`, and resolves when the relay
// has answered; onState gets the connection's states from then on. While it does not connect the relay
// is asked what it sees: "waiting", and "failed" when it gave up, come with its word.
export class Session {
	constructor(endpoint, token, onState) {
		this.endpoint = endpoint;
		this.headers = token ? { Authorization: `Bearer ${token}` } : {};
		this.onState = onState;
		this.late = [];
	}

	async open(prepare) {
		// With the token: TURN credentials are told to those alone who may use them.
		const options = await request(this.endpoint, { method: "OPTIONS", headers: this.headers });
		this.pc = new RTCPeerConnection({
			iceServers: iceServersOf(options.headers.get("Link")),
			bundlePolicy: "max-bundle",
		});
		prepare(this.pc);
		this.pc.addEventListener("connectionstatechange", () => this.onState(this.pc.connectionState));
		await this.pc.setLocalDescription(await this.pc.createOffer());
		await gathered(this.pc);
		const offer = this.pc.localDescription.sdp;
		this.pc.addEventListener("icecandidate", (event) => this.trickle(event.candidate));
		const response = await request(this.endpoint, {
			method: "POST",
			headers: { ...this.headers, "Content-Type": "application/sdp" },
			body: offer,
		});
		this.url = response.headers.get("Location");
		this.etag = response.headers.get("ETag");
		this.links = response.headers.get("Link");
		await this.pc.setRemoteDescription({ type: "answer", sdp: await response.text() });
		this.flush();
		this.ask();
	}

	async ask() {
		const isOpen = () => this.url && this.pc.connectionState !== "connected";
		while (isOpen()) {
			await new Promise((resolve) => setTimeout(resolve, ASK_MS));
			const status = isOpen() ? await this.status() : null;
			if (!isOpen() || !status)
				continue;
			if (status.state === "closed")
				return this.onState("failed", status);
			if (status.detail)
				this.onState("waiting", status);
		}
	}

	// A candidate found after the offer went out.
	trickle(candidate) {
		if (!candidate || !candidate.candidate)
			return;
		this.late.push(candidate);
		if (this.url)
			this.flush();
	}

	async flush() {
		const candidates = this.late.splice(0);
		if (!candidates.length || !this.url)
			return;
		const sdp = this.pc.localDescription.sdp;
		const media = sdp.match(/^m=.*$/m)[0];
		const lines = [
			sdp.match(/^a=ice-ufrag:.*$/m)[0],
			sdp.match(/^a=ice-pwd:.*$/m)[0],
			media,
			`a=mid:${candidates[0].sdpMid}`,
			...candidates.map((c) => `a=${c.candidate}`),
		];
		const headers = { ...this.headers, "Content-Type": "application/trickle-ice-sdpfrag" };
		if (this.etag)
			headers["If-Match"] = this.etag;
		try {
			await request(this.url, {
				method: "PATCH",
				headers,
				body: lines.map((l) => l.trim()).join("\r\n") + "\r\n",
			});
		} catch {
			// The candidates of the offer may do; if not, the connection's state says so.
		}
	}

	// Also while the page goes away: keepalive lets the request outlive it.
	close() {
		if (this.url)
			fetch(this.url, { method: "DELETE", headers: this.headers, keepalive: true }).catch(() => {});
		this.url = null;
		this.pc?.close();
	}

	// The relay's own word on how the session stands, or null.
	async status() {
		if (!this.url)
			return null;
		try {
			return await (await request(`${this.url}/status`, {})).json();
		} catch {
			return null;
		}
	}
}

// Why a session ended, in the relay's words where it has some.
export const endOf = (status) =>
	status?.detail || status?.reason || "The connection to the relay was lost.";

// Differences between two calls turn counters into rates.
export class Rates {
	constructor() {
		this.before = new Map();
	}

	perSecond(key, value, now) {
		const last = this.before.get(key);
		this.before.set(key, { value, now });
		if (!last || now <= last.now || value < last.value)
			return 0;
		return ((value - last.value) * 1000) / (now - last.now);
	}
}

export function showStats(rows) {
	const list = byId("stats");
	list.replaceChildren(
		...rows.map(([name, value]) => {
			const box = document.createElement("div");
			const dt = document.createElement("dt");
			const dd = document.createElement("dd");
			dt.textContent = name;
			dd.textContent = value;
			box.append(dt, dd);
			return box;
		}),
	);
}

// A reason of the relay as a sentence on the page.
export const sentence = (text) => {
	const whole = text.charAt(0).toUpperCase() + text.slice(1);
	return /[.!?]$/.test(whole) ? whole : `${whole}.`;
};

export function showState(state, text) {
	window.sluice.state = state;
	window.sluice.reason = text;
	byId("state").dataset.state = state;
	byId("text").textContent = sentence(text);
}

export const kbit = (bytesPerSecond) => Math.round((bytesPerSecond * 8) / 1000);
