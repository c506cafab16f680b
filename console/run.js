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

  // A choice as a button says it.
  const words = (choice) => (choice[0].toUpperCase() + choice.slice(1)).replaceAll("_", " ");

  // The field of a form for one property, and how it is read: nothing where it was left empty.
  const field = (id, name, said, needed) => {
    const kind = said.type;
    let input;
    if (Array.isArray(said.enum)) {
      input = make("select", "");
      if (!needed) input.append(make("option", "", { value: "" }));
      for (const one of said.enum) input.append(make("option", String(one), { value: JSON.stringify(one) }));
    } else if (kind === "boolean") {
      input = make("input", "", { type: "checkbox", checked: said.default === true });
    } else if (kind === "integer" || kind === "number") {
      input = make("input", "", { type: "number", step: kind === "integer" ? "1" : "any", min: said.minimum ?? "", max: said.maximum ?? "" });
    } else if (kind === "string") {
      input = make("input", "", { maxLength: Math.min(said.maxLength ?? 2000, 2000) });
    } else {
      input = make("textarea", "", { rows: 3, placeholder: "JSON" });
    }
    Object.assign(input, { id, required: needed && kind !== "boolean" });
    if (said.default !== undefined && kind !== "boolean") input.value = input.tagName === "SELECT" ? JSON.stringify(said.default) : said.default;
    const line = make("p", "");
    const label = make("label", `${said.title ?? name}${input.required ? " (needed)" : ""}`, { htmlFor: id });
    line.append(label, " ", input);
    if (said.description) line.append(" ", make("span", said.description, { className: "small" }));
    const read = () => {
      if (kind === "boolean") return input.checked;
      if (input.value === "") return undefined;
      return kind === "string" && input.tagName === "INPUT" ? input.value : JSON.parse(input.value);
    };
    return [line, read];
  };

  const ask = (interrupts, why) => {
    say(why ?? "Somebody must answer first.");
    at("asked").replaceChildren();
    const answers = new Map();
    for (const one of interrupts) {
      const box = make("article", "", { className: "question" });
      const form = make("form", "", { className: "answer" });
      const about = one.metadata?.amends ?? {};
      box.append(make("p", one.message ?? one.reason), form);
      if (about.not_counted) form.append(make("p", about.not_counted, { className: "notice" }));
      if (/^https?:/.test(about.url ?? "")) {
        const line = make("p", "It is done at ");
        line.append(make("a", about.url, { href: about.url, target: "_blank", rel: "noopener noreferrer" }));
        form.append(line);
      }
      const { properties = {}, required = [] } = one.responseSchema ?? {};
      const choices = properties.choice?.enum ?? [];
      const fields = new Map();
      for (const [name, said] of Object.entries(choices.length > 0 ? {} : properties)) {
        const [line, read] = field(`${one.id}-${name}`, name, said, required.includes(name));
        form.append(line);
        fields.set(name, read);
      }
      const buttons = make("p", "", { className: "buttons" });
      form.append(buttons);
      const answered = (entry) => {
        answers.set(one.id, { interruptId: one.id, ...entry });
        form.querySelectorAll("button, input, select, textarea").forEach((each) => (each.disabled = true));
        if (answers.size === interrupts.length) run({ resume: [...answers.values()] }, interrupts);
      };
      const button = (words, entry) => {
        const made = make("button", words, { type: "button" });
        made.addEventListener("click", () => answered(entry));
        buttons.append(made);
      };
      for (const choice of choices) button(words(choice), { status: "resolved", payload: { choice } });
      if (choices.length === 0) {
        buttons.append(make("button", "Answer"));
        form.addEventListener("submit", (event) => {
          event.preventDefault();
          const payload = {};
          try {
            for (const [name, read] of fields) {
              const value = read();
              if (value !== undefined) payload[name] = value;
            }
          } catch (error) {
            say(`An answer is not JSON: ${error.message}`);
            return;
          }
          answered({ status: "resolved", payload: fields.size > 0 ? payload : undefined });
        });
      }
      // Somebody else may have answered what is on a queue.
      if (about.queue) button("Look again", { status: "resolved" });
      button("Put it away", { status: "cancelled" });
      at("asked").append(box);
    }
    at("asked").querySelector("input, select, button")?.focus();
  };

  // `asked` are the questions that it answers: where its answers do not fit, they are asked again.
  const run = async (what, asked) => {
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
        const why = `It cannot be run (${answer.status}): ${said?.error?.message ?? said?.error_description ?? ""}`;
        if (asked) ask(asked, why);
        else say(why);
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
