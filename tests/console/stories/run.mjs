// A run in the browser: it ends with what is asked, goes on with the answer, is denied, and is stopped.
import { assert, eventually, MACHINE, story } from "../support.mjs";

const MONEY = `${MACHINE}
[queues.money]
requester = true

[tools.slow_report]
effect = "read"

[questions.terms]
message = "How much, and from which card?"
queue = "money"
schema = { type = "object", properties = { amount = { type = "integer", minimum = 1, maximum = 100, title = "Amount" }, card = { type = "string", enum = ["giro", "visa"] }, gift = { type = "boolean" }, note = { type = "string", description = "for the receipt" } }, required = ["amount", "card"] }
`;

// A look for whoever asks for one.
const shot = async (page, name) => {
  const folder = process.env.AMENDS_SHOTS;
  if (folder) await page.screenshot({ path: `${folder}/run-${name}.png`, fullPage: true });
};

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

  // A form of several fields, on a phone and in the dark: what does not fit is said, and the form is still there.
  await page.setViewportSize({ width: 375, height: 700 });
  await page.emulateMedia({ colorScheme: "dark" });
  await run({ calls: [{ tool: "terms", args: {} }] });
  await page.waitForSelector("#asked form input[type=number]");
  assert.deepEqual(await page.locator("#asked label").allTextContents(), ["Amount (needed)", "card (needed)", "gift", "note"]);
  // What the browser itself would hold back is sent all the same.
  await page.$eval("#asked form", (form) => (form.noValidate = true));
  await page.fill("#asked input[type=number]", "500");
  await page.selectOption("#asked select", { label: "visa" });
  await shot(page, "asked");
  await page.click("#asked button >> text=Answer");
  await over("It cannot be run (422)");
  await page.fill("#asked input[type=number]", "50");
  await page.selectOption("#asked select", { label: "visa" });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, "nothing is cut off");
  await page.click("#asked button >> text=Answer");
  await over("It is over.");
  assert.match(await page.textContent("#events"), /"amount":50/);
  await shot(page, "answered");
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: "light" });

  // Stopped, and what cannot be run is told.
  await run({ calls: [{ tool: "slow_report", args: { steps: 1000, step_ms: 60 } }] });
  await eventually("the report is asked for", async () => (await page.textContent("#events")).includes("TOOL_CALL_END"));
  await page.click("button >> text=Stop");
  await over("It was stopped.");
  await run({ machine: "nothing" });
  await over("It cannot be run (422)");
  assert.deepEqual(page.complaints.filter((words) => !words.includes("422")), []);
});
