// Hostile texts of agents and tools are shown as the texts they are.
import { assert, story } from "../support.mjs";

const HOSTILE = `"><script>alert(1)</script><img src=x onerror=alert(2)>'</pre></svg>`;

await story(async ({ place, browser }) => {
  const faults = `
[[fault]]
tool = "charge_card"
when = { order = ${JSON.stringify(HOSTILE)} }
attempts = ["lose_response"]
`;
  const gateway = await place.serve({ faults });
  await gateway.call("get_order", { order: HOSTILE });
  await gateway.call(encodeURIComponent(HOSTILE), {});
  await gateway.call("charge_card", { order: HOSTILE, amount: 5 });
  const page = await browser.person(await gateway.link());
  for (const path of ["/", "/queue", "/queue?all=true", "/calls", "/sessions", "/playbook", `/calls?search=${encodeURIComponent(HOSTILE)}`]) {
    await page.goto(gateway.url + path);
    assert.equal(await page.locator("img").count(), 0, path);
    const scripts = await page.locator("script").evaluateAll((all) => all.map((one) => one.getAttribute("src")));
    assert.deepEqual([...new Set(scripts)].sort(), ["/console/console.js", "/console/theme.js"], path);
  }
  assert.equal(await page.inputValue("input[name=search]"), HOSTILE);
  await page.goto(`${gateway.url}/queue`);
  assert.ok((await page.textContent("#questions pre.view")).includes("<script>alert(1)</script>"));
  await page.goto(`${gateway.url}/calls?tool=charge_card`);
  await page.click("tbody tr a");
  assert.ok((await page.textContent("main")).includes("<img src=x onerror=alert(2)>"));
  for (const path of [`/calls/${encodeURIComponent(HOSTILE)}`, `/sessions/${encodeURIComponent(HOSTILE)}`, `/queue/${encodeURIComponent(HOSTILE)}`]) {
    const answer = await page.goto(gateway.url + path);
    assert.equal(answer.status(), 404, path);
  }
  assert.deepEqual(page.complaints.filter((words) => !words.includes("404")), []);
});
