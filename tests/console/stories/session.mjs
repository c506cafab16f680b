// A session: found, its calls on a line of time, what the agent saw, and its chain made again in the page.
import { assert, eventually, story } from "../support.mjs";

const FAULTS = `
[[fault]]
tool = "get_order"
when = { order = "ord_down" }
attempts = ["status_503", "status_503", "ok"]
retry_after = 0
`;

await story(async ({ place, browser }) => {
  const gateway = await place.serve({ faults: FAULTS });
  const { body } = await gateway.call("get_order", { order: "ord_down" });
  assert.equal(body.status, "success", JSON.stringify(body));
  const page = await browser.person(await gateway.link());
  await page.click("nav >> text=Calls");
  await page.fill("input[name=search]", "succeeded_after");
  await page.click("text=Find");
  assert.equal(await page.locator("tbody tr").count(), 1);
  await page.click("tbody tr a");
  assert.equal(await page.textContent("h1"), "Call of get_order");

  // Three attempts and the two waits between them, drawn where they happened.
  const spans = await page.locator("svg.timeline rect").evaluateAll((all) =>
    all.map((one) => [one.getAttribute("class"), Number(one.getAttribute("x")), Number(one.getAttribute("width"))]),
  );
  assert.deepEqual(spans.map(([kind]) => kind), ["span attempt failed", "span wait", "span attempt failed", "span wait", "span attempt"]);
  for (let n = 1; n < spans.length; n++) assert.ok(spans[n][1] >= spans[n - 1][1], JSON.stringify(spans));
  const inWords = await page.locator("ol.spans li").allTextContents();
  assert.ok(inWords[0].includes("Provider5xx") && inWords[1].startsWith("wait"), inWords.join("\n"));

  const agent = JSON.parse(await page.textContent("#agent pre.envelope"));
  assert.deepEqual([agent.status, agent.outcome, agent.attempts.length], ["success", "succeeded_after_compensation", 3]);
  assert.deepEqual(agent.attempts, body.attempts, "what the page says the agent saw is what the agent got");
  assert.match(await page.textContent("#operator"), /failure_judged/);
  await eventually("the chain is made again", async () => (await page.textContent("#chain")).includes("fit"));

  await page.click("#summary a");
  assert.equal(await page.textContent("h1"), "A session");
  await eventually("the chain is made again", async () => /● \d+ links/.test(await page.textContent("#chain")));

  // A link that is not what was hashed is seen.
  await page.route("**/links", async (route) => {
    const answer = await route.fetch();
    const said = await answer.json();
    said.links[1].body = said.links[1].body.replace("get_order", "get_ardor");
    await route.fulfill({ response: answer, json: said });
  });
  await page.reload();
  await eventually("the change is seen", async () => (await page.textContent("#chain")).includes("is not what was hashed"));
  assert.deepEqual(page.complaints, []);

  // The pages work without scripts.
  const plain = await browser.person(await gateway.link(), { javaScriptEnabled: false });
  for (const name of ["Queue", "Calls", "Sessions", "Machines", "Playbook", "Ledger"]) {
    await plain.click(`nav >> text=${name}`);
    assert.equal(await plain.textContent("h1"), name);
  }
  await plain.goto(`${gateway.url}/sessions?search=http`);
  assert.ok((await plain.locator("tbody tr").count()) > 0);
});
