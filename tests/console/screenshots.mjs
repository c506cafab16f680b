// Makes the pictures of docs/screenshots: a gateway with some history, its pages in light and dark.
//   AMENDS_BIN=target/debug/amends node tests/console/screenshots.mjs docs/screenshots
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { eventually, story } from "./support.mjs";

const target = process.argv[2] ?? "docs/screenshots";
const FAULTS = `
[[fault]]
tool = "get_order"
when = { order = "ord_down" }
attempts = ["status_503", "status_503", "ok"]
repeat = true
retry_after = 0

[[fault]]
tool = "charge_card"
when = { order = "ord_lost" }
attempts = ["lose_response"]
repeat = true

[[fault]]
tool = "issue_refund"
when = { order = "ord_lost" }
attempts = ["lose_response", "ok"]
repeat = true
`;

mkdirSync(target, { recursive: true });
await story(async ({ place, browser }) => {
  const gateway = await place.serve({ faults: FAULTS });
  for (const order of ["ord_1", "ord_2", "ord_down", "ord_3"]) await gateway.call("get_order", { order });
  await gateway.call("charge_card", { order: "ord_lost", amount: 42 });
  await gateway.call("issue_refund", { order: "ord_lost", amount: 7 });
  const walk = (await gateway.step("look_up", { order: "ord_1" })).data.session;
  const paying = gateway.step("pay_back", { amount: 500 }, walk);
  const pages = async (page) => {
    const { items } = await (await page.request.get(`${gateway.url}/api/calls?search=succeeded_after`)).json();
    const refund = items.find((call) => call.tool === "issue_refund") ?? items[0];
    return { now: "/", queue: "/queue", call: `/calls/${refund.call}`, machine: `/sessions/${walk}` };
  };
  for (const scheme of ["light", "dark"]) {
    const page = await browser.person(await gateway.link(), { colorScheme: scheme, viewport: { width: 1100, height: 860 } });
    await eventually("the refund is asked about", async () => {
      await page.goto(`${gateway.url}/queue`);
      return (await page.locator("article.question").count()) >= 2;
    });
    for (const [name, path] of Object.entries(await pages(page))) {
      await page.goto(gateway.url + path);
      await page.waitForFunction(() => document.getElementById("live").dataset.state === "live");
      await page.screenshot({ path: join(target, `${name}-${scheme}.png`) });
    }
  }
  const page = await browser.person(await gateway.link());
  await page.goto(`${gateway.url}/queue`);
  await page.click("button >> text=Approve");
  await paying;
});
