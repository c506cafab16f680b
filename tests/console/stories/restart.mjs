// The gateway is killed and starts again on the same port: the page says so, comes back by itself, and catches up.
import { assert, eventually, story } from "../support.mjs";

await story(async ({ place, browser }) => {
  let gateway = await place.serve();
  const page = await browser.person(await gateway.link());
  await page.click("nav >> text=Calls");
  const said = async (words) => (await page.textContent("#live")).includes(words);
  await eventually("the page is live", () => said("Live"));
  const rows = () => page.locator("#calls tbody tr").count();
  await gateway.call("get_order", { order: "ord_before" });
  const before = await eventually("the call is shown", async () => ((await rows()) >= 2 ? rows() : false));

  await gateway.kill();
  await eventually("the page says that the gateway is away", () => said("away; trying again"));
  gateway = await place.serve();
  await gateway.call("get_order", { order: "ord_after" });
  await eventually("the page is live again", () => said("Live again"));
  await eventually("what happened meanwhile is shown", async () => (await rows()) > before);
  // And it goes on from there.
  const now = await rows();
  await gateway.call("get_order", { order: "ord_later" });
  await eventually("what happens now is shown", async () => (await rows()) > now);
  // The session of the browser holds: nobody has to sign in again.
  assert.equal((await page.goto(`${gateway.url}/sessions`)).status(), 200);
});
