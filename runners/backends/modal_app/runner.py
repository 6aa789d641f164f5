"""The runner over Modal: `start` spawns a call; `wait` fetches its output, also after a restart."""

import asyncio
import time
from collections.abc import Mapping

import modal
from pydantic import ValidationError

from runners.backends.modal_app import app
from runners.backends.modal_app.container import ContainerRequest, ContainerResponse
from runners.backends.modal_app.transport import ModalConnections, output
from runners.contract.evaluation import CPU, RANKS_ON_CPU, Evaluation, EvaluationRequest, Progress
from runners.contract.gpus import GPU_TYPES
from runners.contract.runner import (
    CallId,
    Capabilities,
    ProgressSink,
    RunnerError,
    RunnerLostError,
    UnknownCallError,
)
from runners.contract.task import Device
from runners.contract.verdict import Stage
from runners.languages import names_of, specs

NAME = "modal_app"
_UNAVAILABLE_S = 300.0
"""Seconds that Modal may be unreachable before its calls count as lost."""
_STATS_S = 2.0
"""Seconds to wait for the length of Modal's queue, which is only shown to people."""
_RETRY_S = 1.0


class ModalRunner:
    """Runs every call in its own container; Modal has the queue and stores the results."""

    name = NAME

    def __init__(self, slots: Mapping[str, int], version: str | None) -> None:
        self._slots = dict(slots)
        self._version = version
        self._open: set[CallId] = set()
        self._connections = ModalConnections()
        self._backlogs: dict[CallId, int] = {}
        """Call -> length of Modal's queue at its start, until it is reported as progress."""
        self._offer: asyncio.Task[Capabilities] | None = None
        self._closed = False

    async def capabilities(self) -> Capabilities:
        """The capabilities that a container at Modal reports, with the configured slots.

        One container is asked once in the lifetime of this runner; after a failure the next call
        starts another. That container has no GPU, so it does not offer languages that need one.
        They are added here if any slot has a GPU.
        """
        if self._offer is None or (self._offer.done() and _failed(self._offer)):
            self._offer = asyncio.create_task(self._request_capabilities())
        offered = await asyncio.shield(self._offer)
        at_once = {kind: GPU_TYPES[kind].modal_at_once for kind in self._slots if kind != CPU}
        if CPU in self._slots:
            at_once[CPU] = RANKS_ON_CPU
        languages = offered.languages
        if self._slots.keys() != {CPU}:
            on_gpu = names_of(each for each in specs() if each.device is Device.CUDA)
            languages = tuple(dict.fromkeys((*languages, *on_gpu)))
        return offered.model_copy(
            update={"gpus": self._slots, "at_once": at_once, "languages": languages}
        )

    async def _request_capabilities(self) -> Capabilities:
        call = await self._spawn(CPU, ContainerRequest(asked_at=time.time()))
        answer = await self._answer(call)
        if answer.ready is None:
            raise RunnerError(answer.error or "the container has not reported its capabilities")
        deployed = answer.ready.harness_version
        if self._version not in {None, deployed}:
            raise RunnerError(
                f"the app at Modal has harness {deployed}, this is {self._version};"
                f" run `{app.DEPLOY}`"
            )
        return answer.ready

    async def start(self, request: EvaluationRequest) -> CallId:
        if request.gpu not in self._slots:
            kinds = ", ".join(self._slots)
            raise RunnerError(f"no slot of GPU type {request.gpu} at Modal; there are {kinds}")
        asked = ContainerRequest(
            request=request,
            gpus=0 if request.gpu == CPU else request.task.world_size,
            limit_s=request.hard_limit_s,
            asked_at=time.time(),
        )
        return await self._spawn(request.gpu, asked)

    async def _spawn(self, kind: str, asked: ContainerRequest) -> CallId:
        if self._closed:
            raise RunnerError(f"runner {NAME} is closed")
        gpu, limit = app.modal_gpu(kind, asked.gpus), app.container_timeout_s(asked.limit_s)
        async with app.translated():
            client = await self._connections.first()
            function = modal.Function.from_name(app.APP, app.FUNCTION, client=client)
            configured = function.with_options(
                gpu=gpu, timeout=limit, max_containers=self._slots.get(kind, 1)
            )
            backlog = await _backlog(configured)
            spawned = await configured.spawn.aio(asked.model_dump_json())
        call = CallId(spawned.object_id)
        self._open.add(call)
        self._backlogs[call] = backlog
        return call

    async def wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        backlog = self._backlogs.pop(call, 0)
        where = f"at Modal, {backlog} before it" if backlog else "at Modal"
        progress(Progress(stage=Stage.PREPARE, note=where))
        self._open.add(call)
        answer = await self._answer(call)
        if answer.evaluation is None:
            raise RunnerError(answer.error or "the container returned no evaluation")
        durations = answer.evaluation.durations_s | _start_durations(answer)
        return answer.evaluation.model_copy(
            update={"durations_s": durations, "used_s": answer.used_s}
        )

    async def _answer(self, call: CallId) -> ContainerResponse:
        """Wait for a call's response; retry for `_UNAVAILABLE_S` while Modal cannot be reached."""
        reached = time.monotonic()
        while not self._closed:
            try:
                async with app.translated(), self._connections.for_poll() as client:
                    text = await output(client, call)
                reached = time.monotonic()
            except RunnerError as error:
                if not isinstance(error.__cause__, app.UNAVAILABLE):
                    self._open.discard(call)
                    raise _as_unknown_call(error) from error.__cause__
                if time.monotonic() - reached > _UNAVAILABLE_S:
                    raise RunnerLostError(str(error)) from error
                await asyncio.sleep(_RETRY_S)
                continue
            if text is not None:
                self._open.discard(call)
                return _read(text)
        raise RunnerError(f"runner {NAME} is closed")

    async def cancel(self, call: CallId) -> None:
        try:
            async with app.translated():
                spawned = modal.FunctionCall.from_id(call, client=await self._connections.first())
                await spawned.cancel.aio(terminate_containers=True)
        except RunnerError as error:
            if not isinstance(error.__cause__, modal.exception.NotFoundError):
                raise
        self._open.discard(call)

    async def aclose(self) -> None:
        """Cancel every call that this runner started or awaited, and close the connections."""
        self._closed = True
        if self._offer is not None:
            self._offer.cancel()
            await asyncio.wait({self._offer})
        calls = tuple(self._open)
        await asyncio.gather(*map(self.cancel, calls), return_exceptions=True)
        async with app.translated():
            await self._connections.aclose()


async def _backlog(function: modal.Function[..., str, str]) -> int:
    """How many calls wait for such a container; 0 if Modal does not answer in time."""
    try:
        async with asyncio.timeout(_STATS_S):
            return (await function.get_current_stats.aio()).backlog
    except (TimeoutError, modal.exception.Error):
        return 0


def _failed(task: asyncio.Task[Capabilities]) -> bool:
    return task.cancelled() or task.exception() is not None


def _as_unknown_call(error: RunnerError) -> RunnerError:
    """The error, as UnknownCallError if Modal does not know the call."""
    unknown = modal.exception.NotFoundError, modal.exception.InvalidError
    return UnknownCallError(str(error)) if isinstance(error.__cause__, unknown) else error


def _read(text: str) -> ContainerResponse:
    try:
        return ContainerResponse.model_validate_json(text)
    except ValidationError as error:
        raise RunnerError(f"the container broke the contract: {error}") from error


def _start_durations(answer: ContainerResponse) -> dict[str, float]:
    """The durations in seconds of the steps before the harness was ready."""
    start = "modal_cold_start" if answer.cold else "modal_warm_start"
    return {start: answer.waited_s, "modal_ready": answer.ready_s}
