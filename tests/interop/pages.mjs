// The relay's own pages in a browser: browser=chromium|firefox role=publish|play url= stream= codec=
// hidden=yes: the page draws the test picture in a tab that is not in front; simulcast=yes: it is sent in
// several sizes; sizes=N: so many are there to be watched.
import { PEER, run } from "./browser_client.mjs";
import { options } from "./client.mjs";

// The test picture's tone needs Web Audio, which Firefox runs only where there is a sound device; its
// fake camera and microphone do without.
const isHidden = options.hidden === "yes";
const isSimulcast = options.simulcast === "yes";
const source = options.browser === "firefox" && !isHidden && !isSimulcast ? "camera" : "test";
const LAYERS_MS = 60_000; // encoders add sizes as the way proves wide enough
const path = options.role === "publish"
	? `publish/${options.stream}?auto=1&source=${source}&kbps=${isSimulcast ? 2500 : 1200}&codec=${options.codec}&layers=${isSimulcast ? "simulcast" : "one"}`
	: `watch/${options.stream}`;

// One entry of the page's menu for each size that is sent, by the names the publisher gave them.
const SIZES = `Object.values(Object.fromEntries([...document.getElementById("quality").options]
	.filter((o) => o.value).reverse().map((o) => [o.value.split(" ")[0], o.value])))`;

// What is chosen in the menu is what is decoded, each size in turn.
async function watchSizes(page) {
	const shown = `[${SIZES}, sluice.layers]`;
	const entries = await page.until(`${SIZES}.length >= ${options.sizes} && ${SIZES}`, LAYERS_MS, shown);
	for (const entry of entries) {
		await page.evaluate(`(() => {
			const menu = document.getElementById("quality");
			menu.value = ${JSON.stringify(entry)};
			menu.dispatchEvent(new Event("change"));
		})()`);
		// Encoders change a size when they are short of time: what is sent now counts.
		await page.until(`(async () => {
			const video = [...(await ${PEER}.getStats()).values()].find((s) => s.type === "inbound-rtp" && s.kind === "video");
			const sent = sluice.layers.filter((layer) => layer.rid === ${JSON.stringify(entry.split(" ")[0])});
			return sent.some((layer) => layer.width === video.frameWidth);
		})()`, LAYERS_MS, shown);
	}
	return {};
}

await run({
	open: async (browser) => {
		const page = await browser.open(`${options.url}/${path}`);
		if (isHidden) {
			await browser.open("about:blank");
			await page.until("document.hidden");
		}
		return page;
	},
	sizes: watchSizes,
	end: (page) => page.evaluate("window.sluice.stop()"),
});
