// Drives the front door at the base URL of the first argument, and prints what
// the client made of each answer as one JSON document.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "sk-nobody" });
const [email, refused, asked] = process.argv.slice(3);
const tools = [{
  type: "function",
  function: { name: "send", parameters: { type: "object", required: ["to"], properties: { to: { type: "string" } } } },
}];

const request = (text, more = {}) => ({ model: "gpt-x", messages: [{ role: "user", content: text }], ...more });

async function failure(promise) {
  try {
    await promise;
    return null;
  } catch (e) {
    return { name: e.constructor.name, status: e.status, code: e.code, type: e.type, message: e.message };
  }
}

async function streamed(text, more) {
  const out = { text: "", finish: "", usage: 0, calls: [] };
  for await (const chunk of await client.chat.completions.create(request(text, { stream: true, stream_options: { include_usage: true }, ...more }))) {
    if (chunk.usage) out.usage++;
    for (const c of chunk.choices) {
      out.text += c.delta.content ?? "";
      out.finish = c.finish_reason ?? out.finish;
      for (const t of c.delta.tool_calls ?? []) {
        out.calls[t.index] = (out.calls[t.index] ?? "") + (t.function?.arguments ?? "");
      }
    }
  }
  return out;
}

const plain = await client.chat.completions.create(request(`Write to ${email}`));
const called = await client.chat.completions.create(request(`Write to ${email}`, { model: "tools", tools }));
const helper = await client.chat.completions.stream(request(`Write to ${email}`, { model: "tools", tools })).finalChatCompletion();
const models = [];
for await (const m of client.models.list()) models.push(m.id);

console.log(JSON.stringify({
  plain: plain.choices[0].message.content,
  streamed: await streamed(`Write to ${email}`),
  called: called.choices[0].message.tool_calls[0].function.arguments,
  streamedCall: await streamed(`Write to ${email}`, { model: "tools", tools }),
  helper: helper.choices[0].message.tool_calls[0].function.arguments,
  refused: await failure(client.chat.completions.create(request(`It is ${refused}`))),
  refusedStream: await failure(streamed(`It is ${refused}`)),
  held: await streamed(`It is ${asked}`),
  broken: await failure(streamed("one two three four five six seven eight nine", { model: "truncate" })),
  models,
}));
