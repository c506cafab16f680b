// An upstream sends somebody to an address: the page says where, and the call goes on once a person was there.
import { fileURLToPath } from "node:url";
import { assert, eventually, MACHINE, story } from "../support.mjs";

const SERVER = fileURLToPath(new URL("../../../crates/amends/tests/eras/servers/asks.py", import.meta.url));

await story(async ({ place, browser }) => {
  const command = ["python3", SERVER, "legacy", place.file("done.jsonl")];
  const config = `${MACHINE}\n[upstreams.one]\ncommand = ${JSON.stringify(command)}\nprefix = ""\n`;
  const gateway = await place.serve({ config });
  const page = await browser.person(await gateway.link());
  await page.click("nav >> text=Queue");
  const visit = (n) => gateway.call("visit", { n });
  await eventually("the tools of both are served", async () => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const answer = await fetch(`${gateway.url}/mcp`, { method: "POST", headers, body });
    return (await answer.text()).includes('"visit"');
  });

  const first = visit(1);
  await page.waitForSelector("article.question form");
  const link = page.locator("article.question a[target=_blank]");
  assert.equal(await link.getAttribute("href"), "https://example.org/sign-in");
  assert.match(await link.getAttribute("rel"), /noopener/);
  assert.match(await page.textContent("article.question"), /Sign in for one[^]*The upstream says: sign in/);
  if (process.env.AMENDS_SHOTS) await page.screenshot({ path: `${process.env.AMENDS_SHOTS}/upstream.png`, fullPage: true });
  await page.click("button >> text=I signed in");
  const { body } = await first;
  assert.equal(body.status, "success", JSON.stringify(body));

  // Somebody who does not want to, by keys, on a phone.
  await page.setViewportSize({ width: 380, height: 800 });
  const second = visit(2);
  await page.waitForSelector("article.question form");
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than a phone");
  await page.keyboard.press("j");
  await page.keyboard.press("d");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Deny");
  await page.keyboard.press("Enter");
  const told = JSON.stringify((await second).body);
  assert.match(told, /decline/);
  assert.deepEqual(page.complaints, []);
});
