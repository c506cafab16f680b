// Makes the links of a session's chain again from the bytes that were hashed, and compares them with those that are stored.
"use strict";

{
  const line = document.getElementById("chain");
  const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const utf8 = (text) => new TextEncoder().encode(text);
  const sha256 = async (...parts) => {
    const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return hex(await crypto.subtle.digest("SHA-256", all));
  };

  const check = async (session, wantedSeq, wantedHash) => {
    let from = null;
    let head = null;
    let count = 0;
    let found = false;
    for (;;) {
      const query = from === null ? "" : `?from=${from}`;
      const answer = await fetch(`/api/sessions/${encodeURIComponent(session)}/links${query}`);
      if (!answer.ok) throw new Error(`the links cannot be read (${answer.status})`);
      const page = await answer.json();
      if (head === null) {
        head = page.before;
        // Where nothing was dropped, the first link follows from the session's name alone.
        if (page.cut === 0 && head !== (await sha256(utf8("amends/chain/1\n" + session)))) {
          return { good: false, words: "the chain does not begin with this session's name" };
        }
      }
      for (const link of page.links) {
        head = await sha256(unhex(head), utf8(link.body));
        count += 1;
        if (head !== link.hash) return { good: false, words: `event ${link.seq} is not what was hashed` };
        if (link.seq === wantedSeq) {
          found = true;
          if (link.hash !== wantedHash) return { good: false, words: `the receipt names another hash for event ${link.seq}` };
        }
        from = link.seq + 1;
      }
      if (page.links.length === 0 || (wantedSeq && from > wantedSeq)) break;
    }
    if (wantedSeq && !found) return { good: false, words: `event ${wantedSeq} is not there` };
    return { good: true, words: `${count} links were made again in this page, and fit` };
  };

  const run = async () => {
    if (!crypto.subtle) {
      line.textContent = "This browser makes no hashes for pages without TLS; `amends verify` does.";
      return;
    }
    const { session, seq, hash } = line.dataset;
    try {
      const { good, words } = await check(session, seq ? Number(seq) : null, hash);
      line.textContent = (good ? "● " : "▲ ") + words;
      line.dataset.state = good ? "good" : "bad";
    } catch (error) {
      line.textContent = `▲ ${error.message}`;
      line.dataset.state = "unknown";
    }
  };

  if (line) run();
}
