// SPDX-License-Identifier: Apache-2.0
// mcp.mjs: the official client of the Model Context Protocol calls every tool and
// reads what else there is. URL KEY MODE -> a line of JSON
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url, key, mode] = process.argv.slice(2);
const client = new Client({ name: 'test', version: '1.0.0' }, {
    versionNegotiation: {
        mode: mode === 'legacy' || mode === 'auto' ? mode : { pin: mode } },
});
await client.connect(new StreamableHTTPClientTransport(new URL(url),
    { requestInit: { headers: { Authorization: `Bearer ${key}` } } }));

const { tools } = await client.listTools();
const out = { version: client.getNegotiatedProtocolVersion(), called: 0,
    done: [], failed: [] };
for (const tool of tools) {
    const args = {};
    for (const name of tool.inputSchema.required ?? []) {
        args[name] = '0190a6f0-1c2d-7abc-8def-0123456789ab';
    }
    try {
        const result = await client.callTool({ name: tool.name,
            arguments: args });
        out.called++;
        if (!result.isError) {
            out.done.push(tool.name);
        }
    } catch (error) {
        out.failed.push(`${tool.name}: ${error}`);
    }
}
const text = async (uri) =>
    (await client.readResource({ uri })).contents[0].text;
out.workspace = JSON.parse(await text('crmapi://workspace')).id;
out.resources = (await client.listResources()).resources.length;
out.templates = (await client.listResourceTemplates()).resourceTemplates.length;
out.prompts = (await client.listPrompts()).prompts.length;
out.messages = (await client.getPrompt({ name: 'contact_brief',
    arguments: { contact: 'x' } })).messages.length;
console.log(JSON.stringify(out));
await client.close();
