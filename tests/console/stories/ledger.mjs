// The ledger verified and signed, a change of rules tried, and a proposal written, all in the browser.
import { readdirSync, readFileSync } from "node:fs";
import { assert, story } from "../support.mjs";

await story(async ({ place, browser }) => {
  const faults = `
[[fault]]
tool = "get_order"
when = { order = "ord_odd" }
attempts = ["plain_error"]
`;
  const gateway = await place.serve({ faults });
  await gateway.call("get_order", { order: "ord_odd" });
  const page = await browser.person(await gateway.link());
  await page.click("nav >> text=Ledger");
  await page.click("text=Sign a checkpoint");
  assert.match(await page.textContent("#notice"), /Signed: the log has \d+ entries/);
  await page.click("button >> text=Verify");
  assert.match(await page.textContent("#notice"), /^Consistent/);
  assert.match(await page.textContent("#verified"), /every chain recomputed/);

  await page.click("nav >> text=Playbook");
  await page.click("summary >> text=get_order");
  assert.match(await page.textContent("details[open]"), /server_error_5xx.*the table we ship/s);
  await page.fill("#fragment", '[tools.get_order.playbook.server_error_5xx]\ncompensation = "surface"\n');
  await page.click("text=Say what it would have done");
  assert.match(await page.textContent("#whatif"), /playbook over \d+ sessions.*calls compared/s);
  await page.fill("#fragment", '[tools.get_order]\neffect = "write"\n');
  await page.click("text=Say what it would have done");
  assert.match(await page.textContent("main"), /playbook.*effect/s);

  // A failure that nothing recognises lies in the inbox; one click writes a proposal, and nothing is applied.
  const written = () => readdirSync(place.folder).filter((name) => name === "amends-proposals");
  assert.deepEqual(written(), [], "nothing is written unasked");
  await page.click("nav >> text=Playbook");
  assert.match(await page.textContent("#inbox"), /get_order of shop: 1 attempts/);
  await page.fill("#when-0", "result.code == 'odd'");
  await page.selectOption("#failure-0", "RateLimited");
  await page.click("text=Propose this rule");
  assert.match(await page.textContent("#notice"), /^Proposed in .*Nothing is applied/);
  const [file] = readdirSync(place.file("amends-proposals"));
  assert.match(readFileSync(place.file(`amends-proposals/${file}`), "utf8"), /\[\[upstreams."shop".translate\]\]/);
  assert.deepEqual(page.complaints.filter((words) => !words.includes("400")), []);
});
