// A run in the browser: it ends with what is asked, goes on with the answer, is denied, and is stopped.
import { assert, eventually, MACHINE, story } from "../support.mjs";

const MONEY = `${MACHINE}
[queues.money]
requester = true

[tools.slow_report]
effect = "read"
`;

await story(async ({ place, browser }) => {
  const gateway = await place.serve({ config: MONEY });
  const page = await browser.person(await gateway.link());
  const run = async (plan) => {
    await page.fill("#plan", JSON.stringify(plan));
    await page.click("button >> text=Run");
  };
  const over = (words) => page.waitForFunction((said) => document.getElementById("how").textContent.includes(said), words);
  const moves = (order) => [
    { action: "look_up", inputs: { order } },
    { action: "pay_back", inputs: { amount: 500 } },
  ];
  await page.click("nav >> text=Run");
  assert.match(await page.inputValue("#plan"), /"machine": "refund"/);

  // Asked, and answered with a press of a button.
  await run({ machine: "refund", moves: moves("ord_1") });
  await page.waitForSelector("#asked article.question");
  assert.match(await page.textContent("#asked"), /pay_back/);
  assert.match(await page.textContent("#events"), /RUN_STARTED[^]*RUN_FINISHED interrupt/);
  await page.click("#asked button >> text=approve");
  await over("It is over.");
  assert.match(await page.textContent("#state"), /"name": "paid"/);
  assert.equal((await page.locator("#asked article").count()), 0);

  // A thread has one walk: the machine is over in this one, and says so.
  await run({ machine: "refund", moves: moves("ord_2") });
  await over("It is over.");
  assert.match(await page.textContent("#events"), /refused/);

  // Denied in a thread of its own.
  await page.reload();
  await run({ machine: "refund", moves: moves("ord_3") });
  await page.waitForSelector("#asked article.question");
  await page.click("#asked button >> text=deny");
  await over("It is over.");
  assert.match(await page.textContent("#events"), /refused/);
  assert.match(await page.textContent("#state"), /"name": "known"/);

  // Stopped, and what cannot be run is told.
  await run({ calls: [{ tool: "slow_report", args: { steps: 1000, step_ms: 60 } }] });
  await eventually("the report is asked for", async () => (await page.textContent("#events")).includes("TOOL_CALL_END"));
  await page.click("button >> text=Stop");
  await over("It was stopped.");
  await run({ machine: "nothing" });
  await over("It cannot be run (422)");
  assert.deepEqual(page.complaints.filter((words) => !words.includes("422")), []);
});
