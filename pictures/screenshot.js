// node screenshot.js PLATFORM OUT.png
//   < {"chromium": …, "messages": […], "width": …, "height": …, "title": …, "names": {…}}
//
// Bundles the platform's page in memory, shows it in headless Chromium and photographs it. Every request
// is answered from the bundle or refused, so no picture depends on, or tells, anything outside. Prints the
// text that the picture shows.
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const HERE = dirname(fileURLToPath(import.meta.url));
const ORIGIN = "http://picture.invalid";
const PAGES = { discord: "discord/page.js", slack: "slack/page.jsx" };
const TYPES = { css: "text/css", js: "text/javascript", woff2: "font/woff2" };
const HTML = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Picture</title>
<link rel="stylesheet" href="/page.css"><main></main><script type="module" src="/page.js"></script></html>`;

const [platform, out] = process.argv.slice(2);
const { chromium: executablePath, width, height, ...given } = JSON.parse(readFileSync(process.stdin.fd, "utf8"));
const bundle = await bundled(PAGES[platform]);
const browser = await chromium.launch({
  executablePath,
  // Chromium refuses to run as root with its sandbox; the page holds only what this program made.
  chromiumSandbox: false,
  args: ["--disable-gpu", "--disable-quic"],
});
try {
  await photograph(browser);
} catch (problem) {
  console.error(problem.message);
  process.exitCode = 1;
} finally {
  await browser.close();
}

async function bundled(entry) {
  const { outputFiles } = await build({
    absWorkingDir: HERE,
    entryPoints: { page: entry },
    outdir: "/",
    bundle: true,
    write: false,
    format: "esm",
    jsx: "automatic",
    define: { "process.env.NODE_ENV": '"production"' },
    loader: { ".woff2": "file", ".woff": "empty" },
    logLevel: "error",
  });
  return new Map(outputFiles.map((file) => [basename(file.path), Buffer.from(file.contents)]));
}

async function photograph(browser) {
  const page = await browser.newPage({
    viewport: { width, height: 600 },
    deviceScaleFactor: 2,
    timezoneId: "UTC",
    locale: "en-US",
  });
  const failures = [];
  page.on("pageerror", (error) => failures.push(error.message));
  await page.route("**/*", answer);
  // "Today" and "2 minutes ago" are seen from the last message, whenever the picture is made.
  await page.clock.setFixedTime(lastMoment());
  await page.addInitScript((all) => Object.assign(window, all), given);
  await page.goto(`${ORIGIN}/`);
  await page.waitForFunction(() => window.ready);
  const problem = await page.evaluate(() => window.ready.then(() => "", (error) => error.message));
  if (problem || failures.length) throw new Error([problem, ...failures].filter(Boolean).join("; "));
  await page.evaluate(() => document.fonts.ready);
  if (height) await page.locator("main").evaluate(fade, height);
  await page.locator("main").screenshot({ path: out, animations: "disabled" });
  process.stdout.write(await page.innerText("main"));
}

/** Ends what is higher, as a screen would. */
function fade(main, height) {
  if (main.scrollHeight <= height) return;
  const maskImage = "linear-gradient(#000 calc(100% - 120px), transparent)";
  Object.assign(main.style, { maxHeight: `${height}px`, overflow: "hidden", maskImage });
}

function answer(route) {
  const { origin, pathname } = new URL(route.request().url());
  const name = basename(pathname);
  if (origin !== ORIGIN) return route.abort("blockedbyclient");
  if (pathname === "/") return route.fulfill({ contentType: "text/html", body: HTML });
  if (!bundle.has(name)) return route.fulfill({ status: 404 });
  return route.fulfill({ contentType: TYPES[name.split(".").at(-1)], body: bundle.get(name) });
}

function lastMoment() {
  const moments = given.messages.map((message) =>
    message.ts
      ? Number(message.edited?.ts ?? message.ts) * 1000
      : Date.parse(message.edited_timestamp ?? message.timestamp),
  );
  return new Date(Math.max(...moments));
}
