"""Strict stand-ins of real model servers: each refuses, streams and counts as its original does.

stand_in   what they share: a server on 127.0.0.1 that plays a council's members, and troubles on demand
openai     OpenAI's own server, and Azure's
makers     servers of others who make models: Anthropic, Google, Mistral, xAI, Perplexity, Cohere
chinese    DeepSeek, Moonshot, Z.ai, DashScope
hosts      servers of those who host the models of others: OpenRouter, Groq, Together, Fireworks, Cerebras, …
local      servers on one's own machine, and the LiteLLM proxy: Ollama, vLLM, LM Studio, llama.cpp, …
matrix     each stand-in with everything that a council needs of a server
third_party  servers that nobody here wrote: a LiteLLM proxy, llm-katan, aimock, llama.cpp
table      what came of it, line by line, in docs/providers.md

What they do was seen in documentation, source and issue threads, which each docstring names; nothing was
called. Where no source shows something, a stand-in doesn't do it.
"""
