// Drives the TypeScript SDK, version 1, from JSON lines. See docs/testing.md.
// It knows only the stateful era, and checks structuredContent against outputSchema on errors too.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { ask, listening, run } from '../typescript/driver.mjs';

await run({
  eras: ['legacy'],
  async connect({ http, headers, command: [command, ...args] }) {
    const client = new Client({ name: 'amends-test-typescript-v1', version: '0' });
    const transport = http
      ? new StreamableHTTPClientTransport(http, { requestInit: { headers } })
      : // The SDK hands on only a few variables; a test's own must reach the process it starts.
        new StdioClientTransport({ command, args, env: process.env });
    const protocol = rememberProtocol(transport);
    const heard = listening(client);
    await client.connect(transport);
    return {
      ask: (method, params) => ask(client, method, params),
      listen: async () => {
        throw new Error('this SDK knows no stateless subscription');
      },
      heard,
      listTools: () => listEveryPage(client),
      callTool: (params, options) => client.callTool(params, CallToolResultSchema, options),
      info: () => ({ protocol: protocol.version, server: client.getServerVersion()?.name ?? null }),
      async close() {
        if (transport.sessionId) await transport.terminateSession();
        await client.close();
      },
    };
  },
});

async function listEveryPage(client) {
  const names = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    names.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return names;
}

/** This SDK tells the negotiated version to its transport only. */
function rememberProtocol(transport) {
  const protocol = { version: null };
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    protocol.version = version;
    tell?.(version);
  };
  return protocol;
}
