// Streams a chat and a tool call through Weir with the openai package. Only the
// base URL differs from a program that calls the vendor directly; the package
// reads it, and the key, from OPENAI_BASE_URL and OPENAI_API_KEY.
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:8642/v1",
  apiKey: process.env.OPENAI_API_KEY ?? "none",
});
const model = process.env.MODEL ?? "auto";
const messages = [
  { role: "user", content: "Thank Marta Lindqvist (marta.lindqvist@fjord.example) for her letter." },
];

const { data: stream, response } = await client.chat.completions
  .create({ model, messages, stream: true })
  .withResponse();
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
}
console.log(`\n-- ${response.headers.get("x-weir-placement")}, masked: ${response.headers.get("x-weir-masked")}`);

const tools = [{
  type: "function",
  function: {
    name: "send_mail",
    description: "Send a mail.",
    parameters: {
      type: "object",
      properties: { to: { type: "string" }, text: { type: "string" } },
      required: ["to", "text"],
    },
  },
}];
const answer = await client.chat.completions.create({ model, messages, tools, tool_choice: "required" });
for (const call of answer.choices[0].message.tool_calls ?? []) {
  // The values are back, and the arguments are JSON.
  console.log(call.function.name, JSON.parse(call.function.arguments));
}

try {
  await client.chat.completions.create({
    model, messages: [{ role: "user", content: "My password is Tr0ub4dor&3-horse, is it strong?" }],
  });
} catch (err) {
  if (!(err instanceof OpenAI.APIError)) throw err;
  console.log(`-- refused: HTTP ${err.status}, ${err.code}`);
}
