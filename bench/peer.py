"""What a council is measured against: the usual way to build one, and the least it can cost.

The usual way has three stages with barriers, and a new HTTP client for every call. The least is the
same calls as ours in the same order, by one client in a bare loop that keeps nothing.
"""

import asyncio

import httpx

from council.calls import ChatMessage

Answers = dict[str, str]


async def call(base_url: str, model: str, prompt: str) -> str:
    """Make one call with a client of its own."""
    messages: list[ChatMessage] = [{"role": "user", "content": prompt}]
    async with httpx.AsyncClient(timeout=120.0) as client:
        response = await client.post(
            f"{base_url}/chat/completions", json={"model": model, "messages": messages}
        )
        response.raise_for_status()
        return response.json()["choices"][0]["message"]["content"]


async def together(base_url: str, models: list[str], prompt: str) -> Answers:
    """Ask all models the same and wait for the last."""
    replies = await asyncio.gather(*(call(base_url, model, prompt) for model in models))
    return dict(zip(models, replies, strict=True))


async def run(base_url: str, models: list[str], chairman: str, question: str) -> str:
    """Answer, rank, synthesize: nine calls for four models, without corrections or journal."""
    answers = await together(base_url, models, question)
    labelled = "\n\n".join(
        f"Response {chr(65 + place)}:\n{text}" for place, text in enumerate(answers.values())
    )
    rankings = await together(
        base_url, models, f"{question}\n\n{labelled}\n\nRank them under FINAL RANKING:"
    )
    reviews = "\n\n".join(f"{model}:\n{text}" for model, text in rankings.items())
    return await call(base_url, chairman, f"{question}\n\n{labelled}\n\n{reviews}\n\nConclude.")


async def least(client: httpx.AsyncClient, base_url: str, models: list[str], chairman: str) -> None:
    """Answer, review, correct, synthesize: thirteen streamed calls for four models."""

    async def ask(model: str) -> None:
        body = {"model": model, "messages": [{"role": "user", "content": "Shard?"}], "stream": True}
        async with client.stream("POST", f"{base_url}/chat/completions", json=body) as response:
            async for _ in response.aiter_lines():
                pass

    for stage in (models, models, models, [chairman]):
        await asyncio.gather(*(ask(model) for model in stage))
