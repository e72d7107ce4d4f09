// The relay's own pages in a browser: browser=chromium|firefox role=publish|play url= stream= codec=
// hidden=yes: the page draws the test picture in a tab that is not in front.
import { run } from "./browser_client.mjs";
import { options } from "./client.mjs";

// The test picture's tone needs Web Audio, which Firefox runs only where there is a sound device; its
// fake camera and microphone do without.
const isHidden = options.hidden === "yes";
const source = options.browser === "firefox" && !isHidden ? "camera" : "test";
const path = options.role === "publish"
	? `publish/${options.stream}?auto=1&source=${source}&kbps=1200&codec=${options.codec}`
	: `watch/${options.stream}`;

await run({
	open: async (browser) => {
		const page = await browser.open(`${options.url}/${path}`);
		if (isHidden) {
			await browser.open("about:blank");
			await page.until("document.hidden");
		}
		return page;
	},
	end: (page) => page.evaluate("window.sluice.stop()"),
});
