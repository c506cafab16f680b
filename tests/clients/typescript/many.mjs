// A tour of a gateway with several upstreams by the TypeScript client SDK: what it found, as one JSON object.
// Usage: many.mjs --era legacy|modern URL
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const MODES = { legacy: 'legacy', modern: { pin: '2026-07-28' } };
const [, , , era, url] = process.argv;
const client = new Client({ name: 'amends-test-typescript', version: '0' }, { versionNegotiation: { mode: MODES[era] } });
const transport = new StreamableHTTPClientTransport(new URL(url));

let changed;
const hears = new Promise((resolve) => (changed = resolve));
client.setNotificationHandler('notifications/tools/list_changed', () => changed(true));
await client.connect(transport);

const tools = (await client.listTools()).tools.map((tool) => tool.name);
const seen = {
  protocol: client.getNegotiatedProtocolVersion() ?? null,
  tools,
  prompts: (await client.listPrompts()).prompts.map((prompt) => prompt.name),
  resources: (await client.listResources()).resources.map((resource) => resource.uri),
  templates: (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate),
  reads: {},
};
const names = [...new Set(tools.map((tool) => tool.split('__')[0]))].sort();
for (const name of names) {
  const prompt = await client.getPrompt({ name: `${name}__greet` });
  const read = await client.readResource({ uri: `${name}://items/1` });
  const argument = { name: 'x', value: 'v' };
  const completed = await client.complete({ ref: { type: 'ref/prompt', name: `${name}__greet` }, argument });
  const reference = { type: 'ref/resource', uri: `${name}://items/{id}` };
  const formed = await client.complete({ ref: reference, argument: { name: 'id', value: 'w' } });
  const called = await client.callTool({ name: `${name}__echo`, arguments: { x: 1 } });
  seen.reads[name] = [
    prompt.messages[0].content.text,
    read.contents[0].text,
    completed.completion.values[0],
    formed.completion.values[0],
    JSON.parse(called.content[0].text).at,
  ];
}
seen.heard = era === 'legacy' ? await stirred() : null;
seen.after = (await client.listTools()).tools.map((tool) => tool.name);
process.stdout.write(JSON.stringify(seen) + '\n');
await client.close();
process.exit(0);

/** Changes the tools of an upstream until that is heard. */
async function stirred() {
  for (let n = 0; n < 60; n += 1) {
    await client.callTool({ name: `${names[0]}__change`, arguments: { n } });
    const wait = new Promise((resolve) => setTimeout(() => resolve(false), 1000));
    if (await Promise.race([hears, wait])) return true;
  }
  return false;
}
