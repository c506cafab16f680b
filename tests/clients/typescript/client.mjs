// Drives the TypeScript client SDK, version 2, from JSON lines. See docs/testing.md.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { run } from './driver.mjs';

const MODES = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } };

await run({
  // The first is the SDK's own default.
  eras: ['legacy', 'auto', 'modern'],
  async connect({ era, http, headers, inputs, command: [command, ...args] }) {
    const capabilities = {};
    if (inputs['elicitation/create']) capabilities.elicitation = { form: {}, url: {} };
    if (inputs['sampling/createMessage']) capabilities.sampling = {};
    if (inputs['roots/list']) capabilities.roots = {};
    const client = new Client(
      { name: 'amends-test-typescript', version: '0' },
      { capabilities, versionNegotiation: { mode: MODES[era] } },
    );
    const asked = [];
    for (const [method, result] of Object.entries(inputs)) {
      client.setRequestHandler(method, ({ params }) => {
        asked.push({ method, params });
        return result;
      });
    }
    const transport = http
      ? new StreamableHTTPClientTransport(http, { requestInit: { headers } })
      : // The SDK hands on only a few variables; a test's own must reach the process it starts.
        new StdioClientTransport({ command, args, env: process.env });
    await client.connect(transport);
    return {
      asked: () => asked,
      listTools: async () => (await client.listTools()).tools.map((tool) => tool.name),
      callTool: (params, options) => client.callTool(params, options),
      info: () => ({
        protocol: client.getNegotiatedProtocolVersion() ?? null,
        server: client.getServerVersion()?.name ?? null,
      }),
      async close() {
        if (transport.sessionId) await transport.terminateSession();
        await client.close();
      },
    };
  },
});
