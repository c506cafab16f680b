// Signing in at an issuer: who has a role there has it here, and nobody gets in by what was said to or of somebody else.
import { Issuer } from "../issuer.mjs";
import { assert, story } from "../support.mjs";

const PEOPLE = {
  ada: { groups: ["staff", "Finance leads"] },
  root: { groups: ["platform", "Finance leads"] },
  guest: { groups: ["staff", "operator"] },
  local: { groups: ["platform"] },
};

await story(async ({ place, browser }) => {
  const issuer = await Issuer.start(PEOPLE);
  try {
    const secret = place.file("secret", `${issuer.secret}\n`);
    const gateway = await place.serve({ console: issuer.section(secret) });
    assert.deepEqual(gateway.links, [], "nobody needs a link");

    /** Goes to the issuer and says who one is there. */
    const signIn = async (page, who) => {
      await page.goto(gateway.url);
      await page.click("text=Sign in at localhost");
      await page.waitForURL(/authorize/);
      await page.fill("input[name=who]", who);
      const back = page.waitForResponse((response) => response.url().includes("/sign-in/back"));
      await page.click("text=Sign in");
      return await back;
    };
    const words = async (page) => (await page.textContent("main")).replaceAll(/\s+/g, " ");

    const ada = await browser.person();
    await signIn(ada, "ada");
    await ada.waitForSelector("text=ada (approver)");
    assert.equal(await ada.textContent("h1"), "Now");
    // Before, a page was refused, and the issuer has no picture of its own.
    ada.complaints.length = 0;
    assert.equal(new URL(ada.url()).search, "", "the code does not stay in the address");
    const cookies = await ada.context().cookies(gateway.url);
    assert.deepEqual(cookies.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite]), [["amends_console", true, "Strict"]]);
    assert.equal((await ada.request.get(`${gateway.url}/api/sessions`)).status(), 200);
    const page = await ada.getAttribute("meta[name=amends-page]", "content");
    const verify = await ada.request.post(`${gateway.url}/api/verify`, { data: {}, headers: { "x-amends-page": page } });
    assert.equal(verify.status(), 403, "an approver does not verify");

    const root = await browser.person();
    await signIn(root, "root");
    await root.waitForSelector("text=root (operator)");

    // Who has no role, who is not known there, and who calls themselves as somebody of ours.
    for (const [who, status, says] of [
      ["guest", 403, /nothing that it says of you gives you a role here/],
      ["stranger", 401, /the issuer did not let you in/],
      ["local", 401, /names somebody of ours/],
    ]) {
      const page = await browser.person();
      assert.equal((await signIn(page, who)).status(), status, who);
      assert.match(await words(page), says);
      assert.equal((await page.goto(`${gateway.url}/queue`)).status(), 401, who);
    }

    // What the issuer says is looked at.
    const now = Math.floor(Date.now() / 1000);
    for (const [lie, says] of [
      [(claims) => ({ ...claims, nonce: "another" }), /made for another visit/],
      [({ nonce, ...claims }) => claims, /made for another visit/],
      [(claims) => ({ ...claims, aud: "somebody-else" }), /it is for somebody else/],
      [(claims) => ({ ...claims, aud: [claims.aud, "somebody-else"] }), /given to somebody else/],
      [(claims) => ({ ...claims, azp: "somebody-else" }), /given to somebody else/],
      [(claims) => ({ ...claims, iss: "http://localhost:1" }), /another issuer/],
      [(claims) => ({ ...claims, exp: now - 3600 }), /its time is over/],
      [({ sub, ...claims }) => claims, /does not say who you are/],
    ]) {
      issuer.lie = lie;
      const page = await browser.person();
      assert.equal((await signIn(page, "ada")).status(), 401, String(lie));
      assert.match(await words(page), says);
      assert.equal((await page.goto(`${gateway.url}/queue`)).status(), 401, String(lie));
    }
    issuer.lie = (claims) => claims;

    // A way back counts once, and only in the browser that left.
    const eve = await browser.person();
    const used = await signIn(eve, "ada");
    await eve.waitForSelector("text=ada (approver)");
    const redeemed = issuer.redeemed.length;
    const mallory = await browser.person();
    assert.equal((await mallory.goto(used.url())).status(), 401);
    assert.match(await words(mallory), /used already, took too long, or did not begin in this browser/);
    await mallory.goto(gateway.url);
    await mallory.click("text=Sign in at localhost");
    await mallory.waitForURL(/authorize/);
    assert.equal((await mallory.goto(used.url())).status(), 401, "the state is another browser's");

    // The same with the cookie that the browser kept: a state is used up, and a code with it.
    const left = await fetch(`${gateway.url}/sign-in/issuer`, { redirect: "manual" });
    const kept = left.headers.get("set-cookie").split(";")[0];
    const asked = new URL(left.headers.get("location"));
    const state = asked.searchParams.get("state");
    const come = (code, cookie = kept) =>
      fetch(`${gateway.url}/sign-in/back?state=${state}&code=${code}`, { headers: { cookie }, redirect: "manual" });
    const old = issuer.redeemed.at(-1);
    const replayed = await come(old);
    assert.equal(replayed.status, 401, "a code that was redeemed");
    assert.match(await replayed.text(), /did not take what you brought back/);
    assert.equal((await come("x")).status, 401);
    assert.match(await (await come("x")).text(), /used already/);
    assert.equal((await come("x", kept.replace(/.$/, "0"))).status, 401);
    assert.equal(issuer.redeemed.length, redeemed, "nothing was redeemed");
    assert.deepEqual(issuer.refusals, ["the code is not known"], "and asked for once");

    // A key that the issuer does not publish.
    issuer.forge();
    const forged = await browser.person();
    assert.equal((await signIn(forged, "ada")).status(), 401);
    assert.match(await words(forged), /its signature is not the issuer's/);

    // Whoever is signed in stays so while the issuer is away, and others are told.
    await issuer.end();
    await ada.reload();
    assert.equal(await ada.textContent("h1"), "Now");
    assert.deepEqual(ada.complaints, []);
  } finally {
    await issuer.end().catch(() => {});
  }
});
