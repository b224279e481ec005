"""Strict stand-ins of real model servers: each refuses, streams and counts as its original does.

exchanges  what each original says, as it was recorded: a file a server, which names its sources
stand_in   the player of those files: a server on 127.0.0.1 that plays a council's members, and troubles on demand
matrix     each stand-in with everything that a council needs of a server
third_party  servers that nobody here wrote: a LiteLLM proxy, llm-katan, aimock, llama.cpp
table      what came of it, line by line, in bench/servers.md

What they do was seen in documentation, source and issue threads; nothing was called. Where no source
shows something, a stand-in doesn't do it.
"""
