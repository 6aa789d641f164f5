"""Starts, calls and stops a harness process that stays warm between evaluations."""

import asyncio
import logging
import os
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from runners.contract import runner
from runners.contract.evaluation import Evaluation, EvaluationRequest
from runners.process_tree import alive, descendants

_POLL_S = 0.005


def kill(pids: Sequence[int]) -> None:
    """Send SIGKILL to each process that still exists."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def wait_exited(pids: Sequence[int], timeout_s: float) -> bool:
    """Wait until all these processes have exited; False if one still runs after `timeout_s`."""
    end = asyncio.get_running_loop().time() + timeout_s
    while any(alive(pid) for pid in pids):
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(_POLL_S)
    return True


LINE_MAX = 16 << 20
"""The most bytes of a request, and of a line that a harness prints."""
START_S = 120.0
"""Seconds for a harness to start; importing torch from a slow disk takes most of them."""
READY_AGAIN_S = 60.0
"""Seconds for a harness to end its judge, check the GPU and start the next judge."""
_STOP_S = 3.0
_ROOT = Path(__file__).resolve().parents[2]
_SEARCH_PATH = "/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card: its index, its name in CUDA_VISIBLE_DEVICES, and its type."""

    index: int
    handle: str
    kind: str


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """Sandbox options of every harness."""

    strict: bool = False
    """Whether to refuse to run if a layer is missing."""
    hidden: tuple[Path, ...] = ()
    """Folders that no submission may see."""


@dataclass(frozen=True, slots=True)
class HarnessCall:
    """A call's id, its request, and the request as the JSON line for the harness."""

    id: runner.CallId
    request: EvaluationRequest
    line: bytes


def command(gpus: tuple[Gpu, ...], sandbox: SandboxOptions) -> list[str]:
    """The command line of a harness."""
    line = [sys.executable, "-m", "runners.harness", "--serve"]
    line += ["--gpu-index", str(gpus[0].index)] if gpus else []
    line += [word for folder in sandbox.hidden for word in ("--hide", str(folder.resolve()))]
    return [*line, "--strict"] if sandbox.strict else line


def environment(gpus: tuple[Gpu, ...]) -> dict[str, str]:
    """The whole environment of a harness, which inherits no variable of this process."""
    return {
        "PATH": _SEARCH_PATH,
        "LANG": "C.UTF-8",
        "HOME": tempfile.gettempdir(),
        "CUDA_VISIBLE_DEVICES": ",".join(gpu.handle for gpu in gpus),
    }


class UnreachedError(runner.RunnerLostError):
    """The harness ended before it sent any answer; the request may be sent to another one."""


class UnfitError(runner.RunnerError):
    """The machine is unfit for an evaluation; nothing was started."""


class Harness:
    """A running harness; `start_harness` creates it, `stop` ends it."""

    def __init__(self, process: Process) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("the harness process needs pipes for stdin, stdout and stderr")
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._stderr = process.stderr
        self._stderr_tail: deque[str] = deque(maxlen=20)
        self._listener = asyncio.create_task(self._listen())
        self._offered: runner.Capabilities | None = None
        self._ready = False

    @property
    def capabilities(self) -> runner.Capabilities:
        """The capabilities that it reported at its start."""
        if self._offered is None:
            raise runner.RunnerError("the harness has not reported its capabilities")
        return self._offered

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        """The supervisor's process id; its exit ends all processes of the harness."""
        return self._process.pid

    async def _listen(self) -> None:
        while piece := await self._stderr.read(1 << 12):
            text = piece.decode(errors="replace")
            self._stderr_tail.append(text)
            _log.info("harness %d: %s", self.pid, text.rstrip())

    async def _line(self) -> runner.ServedLine:
        try:
            text = await self._stdout.readline()
        except ValueError as error:
            raise runner.RunnerError(f"the harness printed a line over {LINE_MAX} bytes") from error
        if not text.endswith(b"\n"):
            raise runner.RunnerLostError(await self._exit_message())
        try:
            return runner.ServedLine.model_validate_json(text)
        except ValidationError as error:
            raise runner.RunnerError(f"the harness broke the contract: {error}") from error

    async def _exit_message(self) -> str:
        await asyncio.wait({asyncio.ensure_future(self._process.wait())}, timeout=_STOP_S)
        await asyncio.wait({self._listener}, timeout=1)
        output = "".join(self._stderr_tail).strip()[-2000:]
        status = self._process.returncode
        return f"the harness ended with status {status}: {output or 'it printed no error'}"

    async def wait_started(self) -> None:
        """Wait until a new harness has reported its capabilities and is ready for a request."""
        try:
            async with asyncio.timeout(START_S):
                first = await self._line()
        except TimeoutError as error:
            raise runner.RunnerError(f"the harness was not ready after {START_S:.0f} s") from error
        if first.ready is None:
            raise runner.RunnerError("the first line of the harness has no capabilities")
        self._offered = first.ready
        await self.wait_ready()

    async def wait_ready(self) -> None:
        """Wait until it is ready for a request; UnfitError if its machine is unfit."""
        if self._ready:
            return
        try:
            async with asyncio.timeout(READY_AGAIN_S):
                line = await self._line()
        except TimeoutError as error:
            raise UnfitError(
                f"the harness was not ready again after {READY_AGAIN_S:.0f} s"
            ) from error
        if line.health is None:
            raise UnfitError(line.error or "the harness reported no health")
        if line.health.unfit:
            raise UnfitError(line.health.unfit)
        self._ready = True

    async def evaluate(self, call: HarnessCall, progress: runner.ProgressSink) -> Evaluation:
        """Send one request and return its evaluation.

        UnreachedError if the harness ended before its first answer, RunnerError for any other
        failure.
        """
        try:
            await self.wait_ready()
        except runner.RunnerLostError as error:
            raise UnreachedError(str(error)) from error
        self._ready = False
        answer = await self._first_answer(call.line)
        while answer.progress is not None:
            progress(answer.progress)
            answer = await self._line()
        if answer.evaluation is None:
            raise runner.RunnerError(answer.error or "the harness returned no evaluation")
        if answer.evaluation.request_id != call.request.request_id:
            raise runner.RunnerError("the harness answered another request")
        return answer.evaluation

    async def _first_answer(self, line: bytes) -> runner.ServedLine:
        """Send a request and return the first line of the answer; UnreachedError without one."""
        try:
            self._stdin.write(line + b"\n")
            await self._stdin.drain()
            return await self._line()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise UnreachedError(await self._exit_message()) from error
        except runner.RunnerLostError as error:
            raise UnreachedError(str(error)) from error

    async def stop(self) -> None:
        """Kill the process and all its descendants, and wait until they have exited.

        The descendants are killed first, because the process itself then removes its cgroup.
        """
        self._stdin.close()
        processes = descendants(self.pid)
        kill(processes)
        try:
            async with asyncio.timeout(_STOP_S):
                await self._process.wait()
        except TimeoutError:
            processes += descendants(self.pid)
            kill([*processes, self.pid])
            await self._process.wait()
        if not await wait_exited(processes, _STOP_S):
            _log.error("processes beneath harness %d did not end", self.pid)
        self._listener.cancel()
        await asyncio.wait({self._listener})


async def start_harness(gpus: tuple[Gpu, ...], sandbox: SandboxOptions) -> Harness:
    """Start a harness in its own session and wait until it is ready."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command(gpus, sandbox),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=LINE_MAX,
            env=environment(gpus),
            cwd=_ROOT,
            start_new_session=True,
        )
    except OSError as error:
        raise runner.RunnerError(f"the harness cannot be started: {error}") from error
    harness = Harness(process)
    try:
        await harness.wait_started()
    except BaseException:
        await asyncio.shield(harness.stop())
        raise
    return harness
