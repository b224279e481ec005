# A script for other environments, whose libraries this one doesn't have, or has in other versions.
# ruff: noqa: ANN001, ANN201, ASYNC109, BLE001
# pyright: basic, reportMissingImports=false, reportArgumentType=false, reportCallIssue=false
"""Asks a council through clients that others wrote, all at once, in an environment that has them.

Standard input says what (`tests/test_clients_soak.py`); standard output has what each was answered.
"""

import asyncio
import json
import sys
import time

MODEL = "council/default"


async def openai(base, key, text, timeout):
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=base, api_key=key, **timeout)
    reply = await client.chat.completions.create(model=MODEL, messages=[said(text)])
    return reply.choices[0].message.content


async def openai_stream(base, key, text, timeout):
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=base, api_key=key, **timeout)
    stream = await client.chat.completions.create(model=MODEL, messages=[said(text)], stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


async def langchain(base, key, text, timeout):
    from langchain_openai import ChatOpenAI

    return (await ChatOpenAI(model=MODEL, base_url=base, api_key=key, **timeout).ainvoke(text)).content


async def langchain_stream(base, key, text, timeout):
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=MODEL, base_url=base, api_key=key, **timeout)
    return "".join([chunk.content async for chunk in model.astream(text)])


async def llama_index(base, key, text, timeout):
    from llama_index.llms.openai_like import OpenAILike

    model = OpenAILike(model=MODEL, api_base=base, api_key=key, is_chat_model=True, **timeout)
    return (await model.acomplete(text)).text


async def dspy(base, key, text, timeout):
    from dspy import LM

    model = LM(f"openai/{MODEL}", api_base=base, api_key=key, cache=False, **timeout)
    return (await model.acall(text))[0]


async def litellm(base, key, text, timeout):
    from litellm import acompletion

    model = f"openai/{MODEL}"
    reply = await acompletion(model, [said(text)], api_base=base, api_key=key, **timeout)
    return reply.choices[0].message.content


async def agents(base, key, text, timeout):
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=base, api_key=key, **timeout)
    model = OpenAIChatCompletionsModel(model=MODEL, openai_client=client)
    return (await Runner.run(Agent(name="asker", model=model), text)).final_output


def said(text):
    return {"role": "user", "content": text}


async def ask(client, base, key, text, after, seconds):
    await asyncio.sleep(after)
    began = time.monotonic()
    try:
        answer = await globals()[client](base, key, text, {"timeout": seconds} if seconds else {})
    except Exception as error:
        answer = f"{type(error).__name__}: {error}"
    return text, str(answer), round(time.monotonic() - began, 1)


async def main():
    given = json.load(sys.stdin)
    asking = (
        ask(client, given["base"], given["tokens"][client], *question)
        for client, questions in given["questions"].items()
        for question in questions
    )
    sys.stdout.write(f"\n{json.dumps(await asyncio.gather(*asking))}\n")  # LiteLLM writes there, too


asyncio.run(main())
