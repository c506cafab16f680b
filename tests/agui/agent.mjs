// An AG-UI client that is told what to run, a JSON line at a time, and says how it went, a JSON line at a time.
// Every frame of every stream is held against the protocol's own schemas, and against what they do not say.

import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import { HttpAgent } from "@ag-ui/client";
import { EventSchemas } from "@ag-ui/core/schemas";

const url = process.argv[2];
const token = process.argv[3];
const agents = new Map();

// What is wrong with a stream, beside what the client finds.
function faults(text, ended) {
  const found = [];
  if (text.includes("\r")) found.push("a carriage return");
  const events = [];
  for (const frame of text.split("\n\n")) {
    if (frame === "" || frame.startsWith(": ")) continue;
    if (!frame.startsWith("data: ") || frame.includes("\n")) {
      found.push(`an odd frame: ${frame}`);
      continue;
    }
    const event = JSON.parse(frame.slice(6));
    events.push(event);
    const read = EventSchemas.safeParse(event);
    if (!read.success) found.push(`${frame}: ${read.error}`);
    else if (!isDeepStrictEqual(read.data, event)) found.push(`${frame}: a field that the protocol does not know`);
    if (frame.includes(":null")) found.push(`${frame}: an absent field is written`);
  }
  if (events.length > 0 && events[0].type !== "RUN_STARTED") found.push("it does not begin with RUN_STARTED");
  const last = events.filter((event) => ["RUN_FINISHED", "RUN_ERROR"].includes(event.type));
  if (ended && last.length !== 1) found.push(`${last.length} last events`);
  if (ended && events.at(-1) !== last[0]) found.push("something comes after the last event");
  const open = new Set();
  for (const event of events) {
    if (event.type === "STEP_STARTED") open.add(event.stepName);
    if (event.type === "STEP_FINISHED") open.delete(event.stepName);
    if (event.type === "TOOL_CALL_START") open.add(event.toolCallId);
    if (event.type === "TOOL_CALL_END") open.delete(event.toolCallId);
  }
  if (ended && open.size > 0) found.push(`left open: ${[...open]}`);
  return found;
}

function agent(thread, fresh) {
  if (fresh || !agents.has(thread)) {
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    const made = new HttpAgent({ url, threadId: thread, headers, fetch: (to, init) => made.fetches(to, init) });
    made.fetches = async (to, init) => {
      const answer = await fetch(to, init);
      made.status = answer.status;
      if (!answer.ok) {
        made.refused = await answer.clone().json().catch(() => null);
        return answer;
      }
      const [seen, read] = answer.body.tee();
      made.text = "";
      made.over = (async () => {
        const decoder = new TextDecoder();
        try {
          for await (const bytes of seen) made.text += decoder.decode(bytes, { stream: true });
          return true;
        } catch {
          return false;
        }
      })();
      return new Response(read, { status: answer.status, headers: answer.headers });
    };
    agents.set(thread, made);
  }
  return agents.get(thread);
}

async function run({ thread, amends, props, resume, abort_after: abortAfter, fresh, state }) {
  const it = agent(thread, fresh);
  if (state !== undefined) it.state = state;
  Object.assign(it, { status: 0, refused: undefined, text: undefined, over: undefined });
  const events = [];
  let failed;
  const subscriber = {
    onEvent: ({ event }) => {
      events.push(event);
      if (event.type === abortAfter) setTimeout(() => it.abortRun(), 0);
    },
  };
  try {
    const forwardedProps = props ?? (amends === undefined ? undefined : { amends });
    await it.runAgent({ forwardedProps, resume }, subscriber);
  } catch (error) {
    failed = String(error?.message ?? error);
  }
  const ended = await it.over;
  return {
    status: it.status,
    refused: it.refused,
    failed,
    events,
    types: events.map((event) => event.type),
    messages: it.messages,
    state: it.state,
    pending: it.pendingInterrupts,
    // Whether the stream was read to its end, rather than broken off.
    whole: ended,
    faults: it.text === undefined ? [] : faults(it.text, ended && abortAfter === undefined),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  // Runs may go on beside each other: each answer says whose it is.
  run(order).then(
    (went) => console.log(JSON.stringify({ n: order.n, ...went })),
    (error) => console.log(JSON.stringify({ n: order.n, broke: String(error?.stack ?? error) })),
  );
}
