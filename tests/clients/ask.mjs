// Asks a council through clients that others wrote, all at once. Standard input says what
// (tests/test_clients_soak.py); standard output has what each was answered.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, streamText } from "ai";
import { text as read } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";

const model = "council/default";
const said = (content) => [{ role: "user", content }];
const given = JSON.parse(await read(process.stdin));
const baseURL = given.base;

const langchain = (apiKey, timeout) =>
  new ChatOpenAI({ model, apiKey, configuration: { baseURL }, ...(timeout && { timeout }) });
const ai = (apiKey) => createOpenAICompatible({ name: "council", baseURL, apiKey })(model);

const clients = {
  async openai_js(apiKey, text, timeout) {
    const client = new OpenAI({ baseURL, apiKey, ...(timeout && { timeout }) });
    const reply = await client.chat.completions.create({ model, messages: said(text) });
    return reply.choices[0].message.content;
  },
  async ai(apiKey, text) {
    return (await generateText({ model: ai(apiKey), prompt: text })).text;
  },
  async ai_stream(apiKey, text) {
    const failures = [];
    const onError = ({ error }) => failures.push(error);
    const stream = streamText({ model: ai(apiKey), prompt: text, onError });
    let whole = "";
    for await (const piece of stream.textStream) whole += piece;
    if (failures.length) throw failures[0];
    return whole;
  },
  async langchain_js(apiKey, text, timeout) {
    return (await langchain(apiKey, timeout).invoke(text)).content;
  },
  async langchain_js_stream(apiKey, text, timeout) {
    let whole = "";
    for await (const chunk of await langchain(apiKey, timeout).stream(text)) whole += chunk.content;
    return whole;
  },
};

async function ask(client, text, after, seconds) {
  await sleep(after * 1000);
  const began = Date.now();
  let answer;
  try {
    answer = await clients[client](given.tokens[client], text, seconds && seconds * 1000);
  } catch (error) {
    answer = `${error.name}: ${error.message ?? JSON.stringify(error)}`;
  }
  return [text, String(answer), Math.round((Date.now() - began) / 100) / 10];
}

const asking = Object.entries(given.questions).flatMap(([client, questions]) =>
  questions.map((question) => ask(client, ...question)),
);
process.stdout.write(JSON.stringify(await Promise.all(asking)));
