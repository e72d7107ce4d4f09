// /: what the relay carries, from the API, once a second.

import { Rates, byId, kbit, parameter, showStats } from "/pages/common.js";

const rates = new Rates();
let isRefused = false;

function cell(tag, text, isNumber) {
	const element = document.createElement(tag);
	element.textContent = text;
	if (isNumber)
		element.className = "number";
	return element;
}

function row(cells) {
	const tr = document.createElement("tr");
	tr.append(...cells);
	return tr;
}

function link(href, text) {
	const td = document.createElement("td");
	const a = document.createElement("a");
	a.href = href;
	a.textContent = text;
	td.append(a);
	return td;
}

// columns: [title, isNumber]; rows: lists of cells
function fill(id, columns, rows, empty) {
	const head = row(columns.map(([title, isNumber]) => cell("th", title, isNumber)));
	head.querySelectorAll("th").forEach((th) => (th.scope = "col"));
	if (!rows.length) {
		const td = cell("td", empty);
		td.colSpan = columns.length;
		rows = [row([td])];
	}
	byId(id).replaceChildren(head, ...rows);
}

const listOf = (json, name) => (Array.isArray(json) ? json : json?.[name] ?? []);
const shown = (value, unit = "") => (value === undefined || value === null ? "–" : `${value}${unit}`);

function trackText(track) {
	const rate = track.bitrate ?? track.bitrate_bps;
	return rate === undefined ? track.codec : `${track.codec} ${Math.round(rate / 1000)} kbit/s`;
}

function showStreams(streams) {
	const rows = streams.map((s) => row([
		link(`/watch/${encodeURIComponent(s.name)}`, s.name),
		cell("td", s.publisher ? "live" : "no publisher"),
		cell("td", shown(Array.isArray(s.viewers) ? s.viewers.length : s.viewers), true),
		cell("td", (s.tracks ?? []).map(trackText).join(", ") || "–"),
	]));
	fill("streams", [["Stream"], ["State"], ["Viewers", true], ["Tracks"]], rows, "Nobody publishes now.");
}

function showSessions(sessions) {
	const now = performance.now();
	const rows = sessions.slice(0, 200).map((s) => row([
		cell("td", shown(s.number), true),
		cell("td", shown(s.role)),
		cell("td", shown(s.stream)),
		cell("td", shown(s.state) + (s.reason ? ` (${s.reason})` : "")),
		cell("td", `${kbit(rates.perSecond(`s${s.number}`, s.bytes ?? 0, now))} kbit/s`, true),
		cell("td", shown(s.lost), true),
		cell("td", shown(s.rtt_ms, " ms"), true),
	]));
	fill("sessions", [["No.", true], ["Role"], ["Stream"], ["State"], ["Rate", true], ["Lost", true], ["Round trip", true]],
		rows, "There is no session.");
}

function showInfo(info, streams, sessions) {
	const now = performance.now();
	const workers = info.workers ?? [];
	const sum = (key) => workers.reduce((n, w) => n + (w[key] ?? 0), 0);
	byId("about").textContent = `version ${info.version}, up ${Math.floor(info.uptime_s / 60)} min`;
	showStats([
		["Streams", String(streams.length)],
		["Sessions", String(sessions.length)],
		["Packets in", `${Math.round(rates.perSecond("in", sum("packets_in"), now))} /s`],
		["Packets out", `${Math.round(rates.perSecond("out", sum("packets_out"), now))} /s`],
		["Workers", String(workers.length)],
		["Loop lag p99", `${Math.max(0, ...workers.map((w) => w.loop_lag_ms_p99 ?? 0))} ms`],
	]);
}

async function get(path) {
	const token = byId("token").value;
	const headers = token ? { Authorization: `Bearer ${token}` } : {};
	const response = await fetch(path, { headers });
	if (response.ok)
		return response.json();
	if (response.status === 401 || response.status === 403) {
		isRefused = true;
		byId("refused").textContent = (await response.json()).detail;
		byId("login").hidden = false;
		throw new Error("");
	}
	if (response.status === 404)
		throw new Error("The API is on the relay's admin address; open this page there.");
	throw new Error(`The relay answered ${response.status}.`);
}

async function poll() {
	if (isRefused || document.hidden)
		return;
	const trouble = byId("trouble");
	try {
		const [info, streams, sessions] = await Promise.all(
			["info", "streams", "sessions"].map((name) => get(`/api/${name}`)));
		const streamList = listOf(streams, "streams");
		const sessionList = listOf(sessions, "sessions");
		showInfo(info, streamList, sessionList);
		showStreams(streamList);
		showSessions(sessionList);
		trouble.hidden = true;
	} catch (error) {
		trouble.textContent = error instanceof TypeError ? "The relay cannot be reached." : error.message;
		trouble.hidden = !trouble.textContent;
	}
}

byId("token").value = parameter("token");
byId("login").addEventListener("submit", (event) => {
	event.preventDefault();
	byId("login").hidden = true;
	isRefused = false;
	poll();
});
byId("open").addEventListener("submit", (event) => {
	event.preventDefault();
	location.href = `/${event.submitter?.value ?? "watch"}/${encodeURIComponent(byId("name").value)}`;
});
setInterval(poll, 1000);
poll();
