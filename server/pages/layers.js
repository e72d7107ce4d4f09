// What a watching session can be told and asked beside the media: WHEP's extensions for events and for
// the choice of a layer.

const REL = "urn:ietf:params:whep:ext:core:";
const EVENTS = ["active", "inactive", "layers", "reconnect", "viewercount"];
const RETRY_MS = 3000;

function linkOf(links, name) {
	const found = new RegExp(`<([^>]+)>; rel="${REL}${name}"`).exec(links ?? "");
	return found?.[1] ?? null;
}

// Events of a session that has been answered; onEvent gets a name and its data.
export class Extensions {
	constructor(session, onEvent) {
		this.session = session;
		this.events = linkOf(session.links, "server-sent-events");
		this.layer = linkOf(session.links, "layer");
		this.onEvent = onEvent;
		this.open();
	}

	async open() {
		if (!this.events || this.closed)
			return;
		let stream = null;
		try {
			const response = await fetch(this.events, {
				method: "POST",
				headers: { "Content-Type": "application/json" },
				body: JSON.stringify(EVENTS),
			});
			stream = response.status === 201 ? response.headers.get("Location") : null;
			if (response.status === 404)
				return; // the session has ended; its connection says so
		} catch {
			// The relay is away for a moment.
		}
		if (this.closed)
			return;
		if (!stream) {
			this.timer = setTimeout(() => this.open(), RETRY_MS);
			return;
		}
		this.source = new EventSource(stream);
		for (const name of EVENTS)
			this.source.addEventListener(name, (event) => this.closed || this.onEvent(name, JSON.parse(event.data)));
	}

	// {} leaves the choice to the relay.
	async choose(layer) {
		const response = await fetch(this.layer, {
			method: "POST",
			headers: { "Content-Type": "application/json" },
			body: JSON.stringify(layer),
		});
		if (!response.ok)
			throw new Error((await response.json().catch(() => ({}))).detail || `The relay answered ${response.status}.`);
	}

	close() {
		this.closed = true;
		clearTimeout(this.timer);
		this.source?.close();
	}
}

// The layers of an event: those of its one m-line.
export const layersOf = (data) => Object.values(data)[0] ?? [];

const idOf = (layer) => `${layer.rid} ${layer.spatialLayerId} ${layer.temporalLayerId}`;

function textOf(layer) {
	const size = layer.width ? `${layer.width}×${layer.height}` : `Layer ${idOf(layer)}`;
	const rate = layer.fps ? `, ${layer.fps} /s` : "";
	return `${size}${rate}, ${Math.round(layer.bitrate / 1000)} kbit/s`;
}

// A select of "Auto" and the layers that are sent. What is chosen stays, also while it is not sent.
export class LayerMenu {
	constructor(select, onChoice) {
		this.select = select;
		this.layers = new Map();
		select.addEventListener("change", () => {
			const layer = this.layers.get(select.value);
			onChoice(layer ? {
				rid: layer.rid,
				spatialLayerId: layer.spatialLayerId,
				temporalLayerId: layer.temporalLayerId,
			} : {});
		});
	}

	show(layers) {
		const chosen = this.select.value;
		const shown = layers.filter((layer) => layer.bitrate > 0 || idOf(layer) === chosen);
		this.layers = new Map(shown.map((layer) => [idOf(layer), layer]));
		// An open menu must not jump: entries stay as long as they are the same.
		const ids = ["", ...this.layers.keys()];
		const options = [...this.select.options];
		if (options.map((option) => option.value).join("\n") !== ids.join("\n")) {
			this.select.replaceChildren(...ids.map((id) => new Option("Auto", id)));
			this.select.value = ids.includes(chosen) ? chosen : "";
		}
		for (const option of this.select.options)
			option.textContent = option.value ? textOf(this.layers.get(option.value)) : "Auto";
		return this.layers.size > 1;
	}

	reset() {
		this.select.replaceChildren();
		this.layers.clear();
	}
}
