"""The calls of one runner: start, wait, cancel and remove."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

from runners.contract.evaluation import Evaluation, Progress
from runners.contract.runner import CallId, ProgressSink, RunnerError, UnknownCallError

Work = Callable[[CallId, ProgressSink], Coroutine[Any, Any, Evaluation]]
"""The work of one call; it reports progress to its second argument."""


class _Call:
    """One running or finished evaluation, and the functions that receive its progress."""

    def __init__(self, call: CallId, work: Work) -> None:
        self._sinks: list[ProgressSink] = []
        self._last: Progress | None = None
        self.task = asyncio.create_task(work(call, self._report), name=call)
        self.task.add_done_callback(_retrieve_exception)

    def _report(self, progress: Progress) -> None:
        self._last = progress
        for sink in self._sinks:
            sink(progress)

    async def follow(self, progress: ProgressSink) -> None:
        """Report progress until the task ends, beginning with the latest report."""
        self._sinks.append(progress)
        if self._last is not None:
            progress(self._last)
        try:
            await asyncio.wait({self.task})
        finally:
            self._sinks.remove(progress)


class Calls:
    """The common part of a runner's `start`, `wait`, `cancel` and `aclose`.

    It keeps the `remembered` calls that ended last; older ones are removed.
    """

    def __init__(self, runner: str, *, remembered: int = 256) -> None:
        self._runner = runner
        self._remembered = remembered
        self._calls: dict[CallId, _Call] = {}
        self._instance = secrets.token_hex(4)  # distinguishes calls of earlier processes
        self._closed = False
        self.started = 0

    def start(self, work: Work) -> CallId:
        """Start the work under a new id; RunnerError if the runner is closed."""
        call = CallId(f"{self._instance}-{self.started + 1}")
        self.resume(call, work)
        self.started += 1
        return call

    def knows(self, call: CallId) -> bool:
        """Whether the call was started or resumed here and is not removed yet."""
        return call in self._calls

    def resume(self, call: CallId, work: Work) -> None:
        """Continue a call that an earlier process started, unless this one runs it already."""
        if self._closed:
            raise RunnerError(f"runner {self._runner} is closed")
        if call not in self._calls:
            self._calls[call] = _Call(call, work)
            self._remove_old()

    async def wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        """Wait for a call and return its evaluation.

        UnknownCallError if the call is unknown or was cancelled; the caller may start it again.
        """
        running = self._calls.get(call)
        if running is None:
            raise UnknownCallError(f"runner {self._runner} does not know call {call}")
        await running.follow(progress)
        if running.task.cancelled():
            raise UnknownCallError(f"call {call} was cancelled")
        return running.task.result()

    async def cancel(self, call: CallId) -> None:
        """Cancel a call and wait until it has ended; does nothing if it is not running."""
        running = self._calls.get(call)
        if running is not None:
            running.task.cancel()
            await asyncio.wait({running.task})

    def remove(self, call: CallId) -> None:
        """Remove a call."""
        self._calls.pop(call, None)

    async def aclose(self) -> None:
        """Cancel every call and accept no more."""
        self._closed = True
        tasks = [call.task for call in self._calls.values()]
        self._calls.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _remove_old(self) -> None:
        ended = [call for call, state in self._calls.items() if state.task.done()]
        for call in ended[: max(0, len(ended) - self._remembered)]:
            del self._calls[call]


def _retrieve_exception(task: asyncio.Task[Evaluation]) -> None:
    """Retrieve the exception, because asyncio logs one that is never retrieved."""
    if not task.cancelled():
        task.exception()
