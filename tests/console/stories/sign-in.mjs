// Signing in: a link works once, a session holds, and nobody else gets in.
import { assert, story } from "../support.mjs";

await story(async ({ place, browser }) => {
  const gateway = await place.serve();
  const stranger = await browser.person();
  for (const path of ["/", "/sessions", "/queue", "/calls/call_x"]) {
    const answer = await stranger.goto(gateway.url + path);
    assert.equal(answer.status(), 401, path);
    assert.match(await stranger.textContent("main"), /Open the link that the gateway printed/);
  }
  assert.equal((await stranger.request.get(`${gateway.url}/api/sessions`)).status(), 401);

  const link = await gateway.link();
  const ada = await browser.person(link);
  assert.equal(new URL(ada.url()).search, "", "the token does not stay in the address");
  assert.equal(await ada.textContent("h1"), "Now");
  const [cookie] = await ada.context().cookies();
  assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite], ["amends_console", true, "Strict"]);

  const again = await browser.person();
  const used = await again.goto(link);
  assert.equal(used.status(), 401);
  assert.match(await again.textContent("main"), /used already/);

  const answer = await ada.reload();
  const headers = answer.headers();
  assert.match(headers["content-security-policy"], /script-src 'self'.*frame-ancestors 'none'/);
  assert.ok(!headers["content-security-policy"].includes("unsafe"));
  assert.deepEqual([headers["x-content-type-options"], headers["referrer-policy"]], ["nosniff", "same-origin"]);

  // Another page cannot make this browser do anything: without the page's own proof nothing is done.
  for (const path of ["/ledger/verify", "/ledger/checkpoints", "/sign-out", "/playbook/proposals"]) {
    const forged = await ada.request.post(gateway.url + path, { form: { page: "forged" } });
    assert.equal(forged.status(), 403, path);
  }
  const byScript = await ada.request.post(`${gateway.url}/api/verify`, { data: {} });
  assert.equal(byScript.status(), 403);

  await ada.click("text=Sign out");
  assert.match(await ada.textContent("h1"), /Sign in/);
  assert.equal((await ada.goto(`${gateway.url}/sessions`)).status(), 401);
  const bob = await browser.person(await gateway.link());
  assert.equal(await bob.textContent("h1"), "Now", "a new link is printed for each that was used");
  assert.deepEqual(bob.complaints, []);
});
