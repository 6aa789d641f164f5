"""The calls of one runner: begun, waited for, stopped, and forgotten in the end."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

from runners.contract.evaluation import Evaluation, Progress
from runners.contract.runner import CallId, ProgressSink, RunnerError, UnknownCallError

Work = Callable[[CallId, ProgressSink], Coroutine[Any, Any, Evaluation]]
"""What a runner does for one call; it tells the progress to the second argument."""


class _Call:
    """One evaluation under way or ended, and those who listen to its progress."""

    def __init__(self, call: CallId, work: Work) -> None:
        self._sinks: list[ProgressSink] = []
        self._last: Progress | None = None
        self.task = asyncio.create_task(work(call, self._tell), name=call)
        self.task.add_done_callback(_look_at)

    def _tell(self, progress: Progress) -> None:
        self._last = progress
        for sink in self._sinks:
            sink(progress)

    async def ended(self, progress: ProgressSink) -> None:
        """Listen until the task ends, beginning with what was told last."""
        self._sinks.append(progress)
        if self._last is not None:
            progress(self._last)
        try:
            await asyncio.wait({self.task})
        finally:
            self._sinks.remove(progress)


class Calls:
    """What `start`, `wait`, `cancel` and `aclose` of every runner have in common."""

    def __init__(self, runner: str, *, remembered: int = 256) -> None:
        self._runner = runner
        self._remembered = remembered
        self._calls: dict[CallId, _Call] = {}
        self._life = secrets.token_hex(4)  # so that no call of an earlier process is taken for ours
        self._closed = False
        self.started = 0

    def start(self, work: Work) -> CallId:
        """Begin the work under a fresh name; RunnerError once the runner is closed."""
        call = CallId(f"{self._life}-{self.started + 1}")
        self.resume(call, work)
        self.started += 1
        return call

    def knows(self, call: CallId) -> bool:
        """Whether the call was begun or resumed here, and is not forgotten."""
        return call in self._calls

    def resume(self, call: CallId, work: Work) -> None:
        """Go on with a call that an earlier process began, unless this has begun it already."""
        if self._closed:
            raise RunnerError(f"runner {self._runner} is closed")
        if call not in self._calls:
            self._calls[call] = _Call(call, work)
            self._forget_old()

    async def wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        """What the work of a call gave.

        A call that was cancelled is as unknown as one of a machine that is gone: whoever joined
        it may begin it again.
        """
        known = self._calls.get(call)
        if known is None:
            raise UnknownCallError(f"runner {self._runner} does not know call {call}")
        await known.ended(progress)
        if known.task.cancelled():
            raise UnknownCallError(f"call {call} was cancelled")
        return known.task.result()

    async def cancel(self, call: CallId) -> None:
        """Stop a call and wait until it has ended; nothing when it has already, or never was."""
        known = self._calls.get(call)
        if known is not None:
            known.task.cancel()
            await asyncio.wait({known.task})

    def forget(self, call: CallId) -> None:
        """Know a call no more."""
        self._calls.pop(call, None)

    async def aclose(self) -> None:
        """Stop every call, and take no more."""
        self._closed = True
        tasks = [call.task for call in self._calls.values()]
        self._calls.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _forget_old(self) -> None:
        ended = [call for call, known in self._calls.items() if known.task.done()]
        for call in ended[: max(0, len(ended) - self._remembered)]:
            del self._calls[call]


def _look_at(task: asyncio.Task[Evaluation]) -> None:
    """Retrieve the exception: asyncio reports one that nobody waited for."""
    if not task.cancelled():
        task.exception()
