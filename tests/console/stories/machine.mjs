// A machine drawn, and a walk through it: where it is, and the path that was taken.
import { assert, eventually, story } from "../support.mjs";

await story(async ({ place, browser }) => {
  const gateway = await place.serve();
  const page = await browser.person(await gateway.link());
  await page.click("nav >> text=Machines");
  assert.equal(await page.locator("svg.graph .state").count(), 3);
  assert.equal(await page.locator("svg.graph .state.now").count(), 0);
  const first = await gateway.step("look_up", { order: "ord_1" });
  await eventually("the walk is listed", async () => (await page.locator("#walks-refund tbody tr").count()) === 1);
  await page.click("#walks-refund tbody tr a");
  assert.equal(await page.textContent("svg.graph .state.now"), "known");
  assert.equal(await page.locator("svg.graph .way.taken").count(), 1);
  assert.match(await page.textContent("ol.path"), /look_up/);
  // Shapes tell what colours tell: where it is has the thicker edge.
  const width = (of) => page.locator(of).first().evaluate((one) => parseFloat(getComputedStyle(one).strokeWidth));
  assert.ok((await width("svg.graph .state.now rect")) > (await width("svg.graph .state:not(.now) rect")));
  const picture = await page.request.get(`${gateway.url}/api/sessions/${first.data.session}/graph.svg`);
  assert.equal(picture.headers()["content-type"], "image/svg+xml");
  assert.deepEqual(page.complaints, []);
});
