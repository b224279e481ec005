"""`council/PROFILE` as a model of Inspect: each of a task's questions is a run, as a program's is.

Inspect finds it by its entry point (https://inspect.aisi.org.uk/extensions.html). The council has a
thread and a loop of its own, so that nothing of Inspect's keeps a reply waiting.
"""

import asyncio
import threading
from concurrent.futures import Future

import orjson
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from bot.app import open_library
from bot.config.configuration import load
from bot.doors.completions import about, read_request, usage
from bot.doors.door import Caller, Door
from bot.doors.server import local_door
from bot.errors import Unavailable
from bot.view.wording.doors import NO_ANSWER
from storage.scope import TERMINAL, Scope

CALLER = Caller(id="inspect", name="inspect", scope=Scope(TERMINAL, None, None))
LOOK_SECONDS = 60.0


@modelapi("council")
class CouncilModel(ModelAPI):
    """A council that answers as one model, with its journal, budgets and limits."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - as Inspect declares it
    ) -> None:
        """Raise `ConfigurationError` if the council's configuration can't be used."""
        super().__init__(model_name, base_url, api_key, config=config)
        self._configuration = load()
        self._door: Future[Door] | None = None

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - Inspect's name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the council's answer. Raises `CouncilError` where there is none."""
        del config  # a council's members have settings of their own
        if self._door is None:
            self._door = Future()
            opening = self._open(self._door)
            # Inspect closes no model: it ends with the process, as the journal allows at any moment.
            threading.Thread(target=asyncio.run, args=(opening,), daemon=True).start()
        door = await asyncio.wrap_future(self._door)
        body = {
            "model": self.model_name,
            "messages": [{"role": message.role, "content": message.text} for message in input],
            "tools": [tool.name for tool in tools],
            "tool_choice": tool_choice if isinstance(tool_choice, str) else tool_choice.name,
        }
        work = self._answer(door, orjson.dumps(body))
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def max_connections(self) -> int:
        return self._configuration.operations.limits.runs_per_user

    async def _open(self, opened: "Future[Door]") -> None:
        configuration, self._loop = self._configuration, asyncio.get_running_loop()
        try:
            folder = configuration.settings.council_data_dir
            async with (
                open_library(folder, configuration.database) as library,
                local_door(configuration, library) as door,
            ):
                opened.set_result(door)
                await asyncio.Event().wait()
        except Exception as error:
            if opened.done():
                raise
            opened.set_exception(error)

    async def _answer(self, door: Door, body: bytes) -> ModelOutput:
        asked = read_request(body, None).asked
        run = await door.ask(CALLER, asked)
        progress = await door.progress(run.id, CALLER)
        while not progress.is_over:
            progress = await door.until_over(run.id, CALLER, LOOK_SECONDS)
        view = progress.view
        if view is None or view.final is None or view.error is not None:
            failed = view.error if view else progress.run.error
            raise Unavailable(failed.message if failed else NO_ANSWER)
        used = usage(view.usage)
        stop: StopReason = "max_tokens" if view.final.truncated else "stop"
        output = ModelOutput.from_content(f"council/{self.model_name}", view.final.response, stop)
        output.usage = ModelUsage(
            input_tokens=int(str(used["prompt_tokens"])),
            output_tokens=int(str(used["completion_tokens"])),
            total_tokens=int(str(used["total_tokens"])),
            total_cost=view.usage.cost if view.usage and not view.usage.unpriced else None,
        )
        output.metadata = about(progress)
        return output
