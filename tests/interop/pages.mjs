// The relay's own pages in a browser: browser=chromium|firefox role=publish|play url= stream= codec=
import { run } from "./browser_client.mjs";
import { options } from "./client.mjs";

// The test picture's tone needs Web Audio, which Firefox runs only where there is a sound device; its
// fake camera and microphone do without.
const source = options.browser === "firefox" ? "camera" : "test";
const path = options.role === "publish"
	? `publish/${options.stream}?auto=1&source=${source}&kbps=1200&codec=${options.codec}`
	: `watch/${options.stream}`;

await run({
	open: (browser) => browser.open(`${options.url}/${path}`),
	end: (page) => page.evaluate("window.sluice.stop()"),
});
