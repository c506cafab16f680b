// Keys, colours and widths: j and k, the list of keys, light and dark, a phone.
import { assert, story } from "../support.mjs";

await story(async ({ place, browser }) => {
  const gateway = await place.serve();
  for (const order of ["ord_1", "ord_2"]) await gateway.call("get_order", { order });
  const page = await browser.person(await gateway.link());
  await page.goto(`${gateway.url}/sessions`);
  const row = () => page.evaluate(() => [...document.querySelectorAll("[data-row]")].indexOf(document.activeElement));
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  assert.equal(await row(), 1);
  await page.keyboard.press("k");
  assert.equal(await row(), 0);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/sessions/ses_*");
  await page.keyboard.press("?");
  assert.ok(await page.locator("dialog#keys").isVisible());
  await page.keyboard.press("Escape");
  assert.ok(!(await page.locator("dialog#keys").isVisible()));
  // Nothing is a command while somebody writes.
  await page.goto(`${gateway.url}/sessions`);
  await page.fill("input[name=search]", "");
  await page.type("input[name=search]", "jk?");
  assert.equal(await page.inputValue("input[name=search]"), "jk?");
  assert.ok(!(await page.locator("dialog#keys").isVisible()));

  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.click("#theme");
  const dark = await ground();
  assert.notEqual(dark, light);
  await page.reload();
  assert.equal(await ground(), dark, "the choice is kept");
  await page.click("#theme");
  assert.equal(await ground(), light);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.evaluate(() => localStorage.clear());
  await page.reload();
  assert.equal(await ground(), dark, "without a choice the system's colours are used");

  // On a phone nothing reaches out of the page.
  await page.setViewportSize({ width: 360, height: 740 });
  for (const path of ["/", "/queue", "/calls", "/sessions", "/machines", "/playbook", "/ledger"]) {
    await page.goto(gateway.url + path);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${path} is ${wide} px too wide`);
    // Whatever can be used has a name, and the page has its landmarks.
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("button, input:not([type=hidden]), select, textarea")]
        .filter((one) => !one.textContent.trim() && !one.labels?.length && !one.getAttribute("aria-label"))
        .map((one) => one.outerHTML),
    );
    assert.deepEqual(nameless, [], path);
    for (const landmark of ["header", "nav[aria-label]", "main", "h1"]) {
      assert.equal(await page.locator(landmark).count(), 1, `${path} ${landmark}`);
    }
  }
  assert.deepEqual(page.complaints, []);
});
