// Reads commands as JSON lines and answers them with an SDK that the caller brings.
// The commands and answers are described in docs/testing.md.
import { createInterface } from 'node:readline';

const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * `sdk.connect(options)` gives a connected client:
 * `{ listTools(), callTool(params, requestOptions), info(), close() }`.
 */
export async function run(sdk) {
  const options = parseArguments(process.argv.slice(2), sdk.eras);
  let client;
  try {
    client = await sdk.connect(options);
  } catch (error) {
    answer({ fatal: error?.message ?? String(error) });
    process.exit(1);
  }
  await serve(client);
  await client.close();
  process.exit(0);
}

/** Answers commands until end of input, and returns when the last call has been answered. */
async function serve(client) {
  const running = new Map();
  const calls = new Set();
  for await (const line of createInterface({ input: process.stdin })) {
    if (!line.trim()) continue;
    const command = JSON.parse(line);
    switch (command.op) {
      case 'call': {
        const promise = call(client, command, running).finally(() => calls.delete(promise));
        calls.add(promise);
        break;
      }
      case 'cancel':
        cancel(command, running);
        break;
      case 'list':
        await list(client, command);
        break;
      case 'info':
        answer({ n: command.n, ok: true, ...client.info() });
        break;
      default:
        fail(command.n, { message: `unknown op ${command.op}`, type: 'usage' });
    }
  }
  await Promise.all(calls);
}

async function call(client, { n, tool, args, meta, timeout_ms, progress }, running) {
  const abort = new AbortController();
  running.set(n, abort);
  const seen = [];
  const params = { name: tool };
  if (args !== undefined) params.arguments = args;
  if (meta !== undefined) params._meta = meta;
  const options = { signal: abort.signal, timeout: timeout_ms ?? DEFAULT_TIMEOUT_MS };
  if (progress) options.onprogress = ({ progress }) => seen.push(progress);
  try {
    const result = await client.callTool(params, options);
    answer({ n, ok: true, result, progress: seen, asked: client.asked?.() ?? [] });
  } catch (error) {
    const cancelled = { code: null, message: 'cancelled by the test', data: null, type: 'cancelled' };
    fail(n, abort.signal.aborted ? cancelled : describe(error), { progress: seen });
  } finally {
    running.delete(n);
  }
}

function cancel({ n, call }, running) {
  const abort = running.get(call);
  if (!abort) {
    fail(n, { message: `call ${call} is not running`, type: 'not_running' });
    return;
  }
  abort.abort('cancelled by the test');
  answer({ n, ok: true });
}

async function list(client, { n }) {
  try {
    answer({ n, ok: true, tools: await client.listTools() });
  } catch (error) {
    fail(n, describe(error));
  }
}

function describe(error) {
  return {
    code: error?.code ?? null,
    message: error?.message ?? String(error),
    data: error?.data ?? null,
    type: error?.constructor?.name ?? typeof error,
  };
}

function fail(n, error, more = {}) {
  answer({ n, ok: false, error, ...more });
}

function answer(message) {
  process.stdout.write(JSON.stringify(message) + '\n');
}

function parseArguments(given, eras) {
  const split = given.indexOf('--');
  const command = split < 0 ? [] : given.slice(split + 1);
  const rest = split < 0 ? given : given.slice(0, split);
  const options = { era: eras[0], headers: {}, inputs: {}, command };
  while (rest.length > 0) {
    const flag = rest.shift();
    if (flag === '--http' && rest.length > 0) options.http = new URL(rest.shift());
    else if (flag === '--stdio') options.stdio = true;
    else if (flag === '--inputs' && rest.length > 0) options.inputs = JSON.parse(rest.shift());
    else if (flag === '--era' && eras.includes(rest[0])) options.era = rest.shift();
    else if (flag === '--header' && rest[0]?.includes(': ')) {
      const header = rest.shift();
      const colon = header.indexOf(': ');
      options.headers[header.slice(0, colon)] = header.slice(colon + 2);
    } else usage(eras);
  }
  if (!options.http === !options.stdio || !options.stdio !== (command.length === 0)) usage(eras);
  return options;
}

function usage(eras) {
  process.stderr.write(
    `usage: client.mjs [--era ${eras.join('|')}] [--header 'Name: value']... [--inputs JSON] (--http URL | --stdio -- COMMAND ARGS...)\n`,
  );
  process.exit(2);
}
