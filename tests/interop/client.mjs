// What the clients' scripts share: their arguments, and the talk with tests/interop/run over stdin
// and stdout, one JSON object a line.
//
// A client starts, connects and says {"ok": true, ...facts}. Then it does what it is asked, with one
// answer each: "more" (a player: a good deal more was decoded since the last answer), "restart" (ICE),
// "sizes" (a player with a menu: each size of the picture was shown), "end" (leave properly, then exit). The end of stdin means end at once.

import { createInterface } from "node:readline";

export const ENOUGH = { frames: 45, sounds: 50 }; // decoded video frames, received audio packets

export const options = Object.fromEntries(process.argv.slice(2).map((word) => {
	const at = word.indexOf("=");
	return [word.slice(0, at), word.slice(at + 1)];
}));

const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);

// begin() connects and returns the facts; commands: { more, restart, end }.
export async function serve(begin, commands) {
	const answer = async (work) => {
		try {
			say({ ok: true, ...await work() });
			return true;
		} catch (error) {
			say({ ok: false, why: error?.message ?? String(error) });
			return false;
		}
	};
	if (!await answer(begin))
		process.exit(1);
	for await (const line of createInterface({ input: process.stdin })) {
		const isDone = await answer(async () => {
			if (!commands[line])
				throw new Error(`cannot ${line}`);
			return await commands[line]();
		});
		if (line === "end")
			process.exit(isDone ? 0 : 1);
	}
	await commands.end?.().catch(() => {});
	process.exit(0);
}

// Counts of a player before "more" was asked, so that only what came since counts.
export function growth(counts) {
	let before = { frames: 0, sounds: 0 };
	return {
		isEnough: () => counts.frames - before.frames >= ENOUGH.frames && counts.sounds - before.sounds >= ENOUGH.sounds,
		mark: () => before = { ...counts },
	};
}

export async function until(what, condition, limitMs = 45_000) {
	const end = Date.now() + limitMs;
	while (!condition()) {
		if (Date.now() > end)
			throw new Error(`not in ${limitMs / 1000} s: ${what()}`);
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
}
