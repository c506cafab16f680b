// Runs something through the AG-UI door: sends what is to be run, tells each event as it comes, and asks what is asked.
"use strict";

{
  const at = (id) => document.getElementById(id);
  const thread = `console-${crypto.randomUUID()}`;
  let state = {};
  let going = null;

  const say = (words) => {
    at("how").hidden = false;
    at("how").textContent = words;
  };

  const make = (name, text, more = {}) => Object.assign(document.createElement(name), { textContent: text }, more);

  // A JSON Patch of the kinds that the door sends.
  const patched = (from, delta) => {
    const to = structuredClone(from);
    for (const { op, path, value } of delta) {
      const names = path.slice(1).split("/");
      const last = names.pop();
      const place = names.reduce((held, name) => held[name], to);
      if (op === "remove") delete place[last];
      else place[last] = value;
    }
    return to;
  };

  const headers = () => {
    const token = at("token")?.value;
    return { "content-type": "application/json", accept: "text/event-stream", ...(token && { authorization: `Bearer ${token}` }) };
  };

  const about = (event) => {
    const { type, ...rest } = event;
    const item = make("li", "");
    item.append(make("code", type), " ");
    const words = rest.stepName ?? rest.toolCallName ?? rest.message ?? rest.outcome?.type;
    if (type === "TOOL_CALL_RESULT") {
      const said = rest.metadata?.["amends/envelope"];
      item.append(`${said?.status ?? ""}: `, typeof rest.content === "string" ? rest.content.slice(0, 2000) : "…");
    } else if (words) {
      item.append(words);
    } else if (rest.delta) {
      item.append(typeof rest.delta === "string" ? rest.delta : JSON.stringify(rest.delta));
    }
    return item;
  };

  const told = (event) => {
    at("events").append(about(event));
    if (event.type === "STATE_SNAPSHOT") state = event.snapshot;
    if (event.type === "STATE_DELTA") state = patched(state, event.delta);
    at("state").textContent = JSON.stringify(state, null, 2);
    if (event.type === "RUN_ERROR") say(`It failed: ${event.message} (${event.code})`);
    if (event.type !== "RUN_FINISHED") return;
    const outcome = event.outcome.type;
    if (outcome === "interrupt") ask(event.outcome.interrupts);
    else say(outcome === "cancelled" ? "It was stopped." : "It is over.");
  };

  const ask = (interrupts) => {
    say("Somebody must answer first.");
    const answers = new Map();
    for (const one of interrupts) {
      const box = make("article", "", { className: "question" });
      box.append(make("p", one.message ?? one.reason));
      const refused = one.metadata?.amends?.not_counted;
      if (refused) box.append(make("p", refused, { className: "notice" }));
      const choices = one.responseSchema?.properties?.choice?.enum ?? [];
      const answer = (words, entry) => {
        const button = make("button", words, { type: "button" });
        button.addEventListener("click", () => {
          answers.set(one.id, { interruptId: one.id, ...entry() });
          box.querySelectorAll("button").forEach((other) => (other.disabled = true));
          if (answers.size === interrupts.length) run({ resume: [...answers.values()] });
        });
        box.append(button, " ");
      };
      for (const choice of choices) answer(choice, () => ({ status: "resolved", payload: { choice } }));
      if (choices.length === 0) {
        const field = make("textarea", "{}", { rows: 3 });
        field.setAttribute("aria-label", "The answer, as JSON");
        box.append(make("pre", JSON.stringify(one.responseSchema ?? {}, null, 2)), field);
        answer("Answer", () => ({ status: "resolved", payload: JSON.parse(field.value) }));
      } else {
        answer("Look again", () => ({ status: "resolved" }));
      }
      answer("Put it away", () => ({ status: "cancelled" }));
      at("asked").append(box);
    }
    at("asked").querySelector("button")?.focus();
  };

  const run = async (what) => {
    if (going) return;
    going = crypto.randomUUID();
    at("asked").replaceChildren();
    at("stop").hidden = false;
    say("It runs.");
    try {
      const body = JSON.stringify({ threadId: thread, runId: going, messages: [], state, ...what });
      const answer = await fetch("/agui", { method: "POST", headers: headers(), body });
      if (!answer.ok) {
        const said = await answer.json().catch(() => null);
        say(`It cannot be run (${answer.status}): ${said?.error?.message ?? said?.error_description ?? ""}`);
        return;
      }
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let held = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const frames = (held + value).split("\n\n");
        held = frames.pop();
        // The next run may only begin when this one is over.
        const events = frames.filter((frame) => frame.startsWith("data: ")).map((frame) => JSON.parse(frame.slice(6)));
        if (events.some((event) => event.type === "RUN_FINISHED" || event.type === "RUN_ERROR")) going = null;
        events.forEach(told);
      }
    } catch (error) {
      say(`The stream broke off: ${error.message}`);
    } finally {
      going = null;
      at("stop").hidden = true;
    }
  };

  at("run").addEventListener("submit", (event) => {
    event.preventDefault();
    let amends;
    try {
      amends = JSON.parse(at("plan").value);
    } catch (error) {
      say(`This is not JSON: ${error.message}`);
      return;
    }
    at("events").replaceChildren();
    // What an earlier plan waited for is left to whoever answers it.
    delete state.amends;
    run({ forwardedProps: { amends } });
  });

  at("stop").addEventListener("click", () => {
    const body = JSON.stringify({ threadId: thread });
    fetch("/agui/stop", { method: "POST", headers: headers(), body }).catch(() => {});
  });
}
