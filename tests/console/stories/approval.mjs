// An approval from the request to the tool's result, a denial, and two who answer at once.
import { assert, eventually, story } from "../support.mjs";

async function asked(page) {
  await page.waitForSelector("article.question form");
  return page.getAttribute("article.question", "id");
}

await story(async ({ place, browser }) => {
  const gateway = await place.serve();
  const ada = await browser.person(await gateway.link());
  await ada.click("nav >> text=Queue");
  assert.match(await ada.textContent("#questions"), /Nobody is asked anything/);

  // Approved: the agent waits, a person presses a button, the tool is called.
  const first = await gateway.step("look_up", { order: "ord_1" });
  const walk = first.data.session;
  const paying = gateway.step("pay_back", { amount: 500 }, walk);
  // The page hears of it by itself.
  const question = await asked(ada);
  const shown = await ada.textContent(`#${question}`);
  assert.match(shown, /money/);
  assert.match(shown, /"amount": 500/);
  await ada.fill("input[name=note]", "spoke to the bank");
  await ada.click("button >> text=Approve");
  assert.match(await ada.textContent("#notice"), /taken, and acted on/);
  const paid = await paying;
  assert.equal(paid.status, "success", JSON.stringify(paid));
  await ada.goto(`${gateway.url}/queue?all=true`);
  assert.match(await ada.textContent(`#${question}`), /Answered approve by .*spoke to the bank/s);
  await ada.goto(`${gateway.url}/sessions/${walk}`);
  assert.match(await ada.textContent("#walk"), /It is in paid after 2 moves, and over/);

  // Denied with the keyboard: `d` leads to the button, Enter presses it.
  const other = await gateway.step("look_up", { order: "ord_2" });
  await ada.goto(`${gateway.url}/queue`);
  const denied = gateway.step("pay_back", { amount: 700 }, other.data.session);
  await asked(ada);
  await ada.keyboard.press("j");
  await ada.keyboard.press("d");
  assert.equal(await ada.evaluate(() => document.activeElement.textContent), "Deny");
  await ada.keyboard.press("Enter");
  await ada.waitForSelector("#notice");
  const refused = await denied;
  assert.equal(refused.error.kind, "approval_denied", JSON.stringify(refused));

  // Two at once: the first counts, and the other is told who was first.
  const third = await gateway.step("look_up", { order: "ord_3" });
  const bob = await browser.person(await gateway.link());
  const racing = gateway.step("pay_back", { amount: 900 }, third.data.session);
  for (const page of [ada, bob]) {
    await page.goto(`${gateway.url}/queue`);
    await asked(page);
  }
  const press = (page, word) => Promise.all([page.waitForNavigation(), page.click(`button >> text=${word}`)]);
  const [[said], [late]] = await Promise.all([press(ada, "Approve"), press(bob, "Deny")]);
  const statuses = [said.status(), late.status()].sort();
  assert.deepEqual(statuses, [200, 409]);
  const loser = said.status() === 409 ? ada : bob;
  assert.match(await loser.textContent("#notice"), /too late: .* answered `(approve|deny)`/);
  const ended = await racing;
  const approved = said.status() === 200;
  assert.equal(ended.status, approved ? "success" : "refused", JSON.stringify(ended));
  await eventually("nobody is asked anything", async () => {
    await ada.goto(`${gateway.url}/queue`);
    return (await ada.textContent("#questions")).includes("Nobody is asked anything");
  });
  assert.deepEqual(ada.complaints.filter((words) => !words.includes("409")), []);
});
