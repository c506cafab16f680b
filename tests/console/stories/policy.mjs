// A policy asks two persons for approval, from the request to the tool's result; and a form that a person fills in.
import { Issuer } from "../issuer.mjs";
import { assert, eventually, story } from "../support.mjs";

const CONFIG = `
[tools.get_order]
effect = "read"

[tools.charge_card]
effect = "write"

[tools.issue_refund]
effect = "keyed"
key = { argument = "idempotency_key", window = "24h", durable = true }
ask = ["terms"]

[questions.terms]
message = "How much is paid back?"
queue = "finance"
schema = { type = "object", properties = { amount = { type = "number", title = "Amount", minimum = 1 } }, required = ["amount"] }

[people]
hold = "50s"

[policy]
text = '''
@id("reads")
permit (principal, action in Action::"read", resource);
@id("small")
permit (principal, action in Action::"write", resource) when { context.args.amount.lessThanOrEqual(decimal("50.0")) };
@id("large")
@approval("finance")
@persons("2")
permit (principal, action == Action::"charge_card", resource) when { context.args.amount.greaterThan(decimal("50.0")) };
'''
`;
const PEOPLE = { ada: { groups: ["Finance leads"] }, bob: { groups: ["Finance leads"] } };

await story(async ({ place, browser }) => {
  const issuer = await Issuer.start(PEOPLE);
  try {
    const secret = place.file("secret", `${issuer.secret}\n`);
    const gateway = await place.serve({ config: CONFIG, console: issuer.section(secret) });
    const person = async (who) => {
      const page = await browser.person();
      await page.goto(gateway.url);
      await page.click("text=Sign in at localhost");
      await page.fill("input[name=who]", who);
      await page.click("text=Sign in");
      await page.waitForSelector(`text=${who} (approver)`);
      page.complaints.length = 0;
      await page.goto(`${gateway.url}/queue`);
      return page;
    };
    const ada = await person("ada");
    const bob = await person("bob");

    // Two persons: one after the other, and not the same one twice.
    const charging = gateway.call("charge_card", { order: "ord_1", amount: 500 });
    const first = await asked(ada);
    assert.match(await ada.textContent(`#${first}`), /2 must say yes; 2 are still needed/);
    assert.match(await ada.textContent(`#${first}`), /"amount": 500/);
    const scopes = await ada.locator(`#${first} button`).allTextContents();
    assert.deepEqual(scopes, ["Approve", "Approve for this session", "Approve these arguments always", "Deny"]);
    await ada.click(`#${first} button >> text=Approve`);
    await eventually("the second is asked", async () => {
      await ada.goto(`${gateway.url}/queue`);
      return (await asked(ada)) !== first;
    });
    const second = await asked(ada);
    assert.match(await ada.textContent(`#${second}`), /2 must say yes; one more is needed/);
    await ada.click(`#${second} button >> text=Approve`);
    assert.match(await ada.textContent("#notice"), /does not count/);
    await bob.goto(`${gateway.url}/queue`);
    await bob.click(`#${second} button >> text=Approve`);
    assert.match(await bob.textContent("#notice"), /taken/);
    const charged = await charging;
    assert.equal(charged.body.status, "success", JSON.stringify(charged.body));
    assert.equal(charged.body.data.amount, 500);
    await bob.goto(`${gateway.url}/calls?tool=charge_card`);
    assert.match(await bob.textContent("main"), /succeeded/);

    // What no policy permits is denied, and nobody can wave it through.
    const denied = await gateway.call("send_email", { to: "a", subject: "b" });
    assert.equal(denied.body.error.kind, "policy_blocked", JSON.stringify(denied.body));

    // A form: what does not fit is told, what fits goes into the call.
    const refunding = gateway.call("issue_refund", { order: "ord_2", amount: 1 });
    await bob.goto(`${gateway.url}/queue`);
    const form = bob.locator("article.question", { hasText: "How much is paid back?" });
    await form.waitFor();
    await form.locator("input[name='answer.amount']").fill("0.5");
    await form.locator("button >> text=Answer").click();
    assert.match(await bob.textContent("main"), /amount/);
    await bob.goto(`${gateway.url}/queue`);
    await form.locator("input[name='answer.amount']").fill("42");
    await form.locator("button >> text=Answer").click();
    assert.match(await bob.textContent("#notice"), /taken/);
    const refunded = await refunding;
    assert.equal(refunded.body.status, "success", JSON.stringify(refunded.body));
    assert.equal(refunded.body.data.amount, 42, "a person's word counts before the agent's");
    assert.deepEqual(bob.complaints.filter((words) => !words.includes("status of 400")), []);
  } finally {
    await issuer.end().catch(() => {});
  }
});

async function asked(page) {
  await page.waitForSelector("article.question form");
  return page.getAttribute("article.question", "id");
}
