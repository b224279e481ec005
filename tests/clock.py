"""A clock that a test may set: `time.monotonic`, for all that is imported later and names it."""

import time

monotonic = time.monotonic
time.monotonic = lambda: monotonic()  # noqa: PLW0108 - looked up each time
