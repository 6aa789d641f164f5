"""One container: a process that runs Modal's own entrypoint, and the server that it calls."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf.empty_pb2 import Empty
from modal_proto import api_pb2

from runners.process_tree import descendants
from tests.doubles.modal.model import Function, Input, Result
from tests.doubles.modal.service import Service

if TYPE_CHECKING:
    from tests.doubles.modal.scheduler import Scheduler

_BEAT_S = 10
_TAIL = 2000


class Container:
    """A process that executes inputs of one function; `kill` also kills its descendants."""

    def __init__(self, scheduler: "Scheduler", function: Function, name: str) -> None:
        self.id = name
        self.function = function
        self.current: Input | None = None
        self.served = 0
        self.reported: Result | None = None
        self.cancelled: asyncio.Queue[str] = asyncio.Queue()
        self._scheduler = scheduler
        self._why: Result | None = None
        self._process: Process | None = None
        self._folder = scheduler.folder / name
        self._server = ContainerService(scheduler, self).server()

    @property
    def pid(self) -> int:
        """The container's first process."""
        if self._process is None:
            raise RuntimeError(f"container {self.id} has not begun")
        return self._process.pid

    @property
    def free(self) -> bool:
        """Whether it can take another input."""
        return self.current is None and not (self.served and self.function.single_use)

    async def start(self) -> None:
        """Start the process."""
        self._folder.mkdir()
        socket, arguments = self._folder / "s", self._folder / "args"
        await self._server.start(path=str(socket))
        arguments.write_bytes(self._arguments().SerializeToString())
        with (self._folder / "log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "modal._container_entrypoint",
                env=self._environment(socket, arguments),
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
            )

    def _arguments(self) -> api_pb2.ContainerArguments:
        return api_pb2.ContainerArguments(
            task_id=self.id,
            function_id=self.function.id,
            app_id=self.function.app,
            function_def=self.function.definition,
            environment_name="main",
            app_layout=self._scheduler.layout(self.function.app),
        )

    def _environment(self, socket: Path, arguments: Path) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith("MODAL_")}
        return ours | {
            "MODAL_CONTAINER_ARGUMENTS_PATH": str(arguments),
            "MODAL_SERVER_URL": f"unix://{socket}",
            "MODAL_TASK_ID": self.id,
            "MODAL_IS_REMOTE": "1",
            "MODAL_CONFIG_PATH": "/nonexistent",
            "MODAL_HEARTBEAT_INTERVAL": "1",
            "MODAL_ENVIRONMENT": "main",
            "PYTHONPATH": os.pathsep.join(self._scheduler.python_path),
            "PYTHONUNBUFFERED": "1",
        }

    async def ended(self) -> int:
        """Wait until it has ended and return its exit status."""
        if self._process is None:
            raise RuntimeError(f"container {self.id} has not begun")
        status = await self._process.wait()
        self._server.close()
        await self._server.wait_closed()
        return status

    def exit_result(self, status: int) -> Result:
        """The result of the input that it was executing when it ended."""
        if self._why is not None:
            return self._why
        log = self._folder / "log"
        words = log.read_bytes()[-_TAIL:].decode(errors="replace") if log.exists() else ""
        return self.reported or Result(
            status=Result.GENERIC_STATUS_FAILURE,
            exception=f"container exited with code {status}",
            traceback=words,
            exitcode=status,
        )

    def kill(self, why: Result | None = None) -> None:
        """Kill it and all its descendants, as the end of a real container does."""
        self._why = why
        for pid in (*descendants(self.pid), self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class ContainerService(Service):
    """The RPCs that a container calls."""

    def __init__(self, scheduler: "Scheduler", container: Container) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._container = container
        self.missing = scheduler.missing

    async def container_hello(self, _: Empty) -> Empty:
        return Empty()

    async def container_heartbeat(
        self, _: api_pb2.ContainerHeartbeatRequest
    ) -> api_pb2.ContainerHeartbeatResponse:
        try:
            cancelled = await asyncio.wait_for(self._container.cancelled.get(), _BEAT_S)
        except TimeoutError:
            return api_pb2.ContainerHeartbeatResponse()
        event = api_pb2.CancelInputEvent(input_ids=[cancelled])
        return api_pb2.ContainerHeartbeatResponse(cancel_input_event=event)

    async def function_get_inputs(
        self, _: api_pb2.FunctionGetInputsRequest
    ) -> api_pb2.FunctionGetInputsResponse:
        found = await self._scheduler.next_input(self._container)
        if found is None:
            over = api_pb2.FunctionGetInputsItem(kill_switch=True)
            return api_pb2.FunctionGetInputsResponse(inputs=[over])
        item = api_pb2.FunctionGetInputsItem(
            input_id=found.id,
            input=found.given,
            function_call_id=found.call.id,
            retry_count=found.tries,
            function_map_idx=found.index,
        )
        return api_pb2.FunctionGetInputsResponse(inputs=[item])

    async def function_put_outputs(self, request: api_pb2.FunctionPutOutputsRequest) -> Empty:
        for item in request.outputs:
            await self._scheduler.put_output(
                item.input_id, item.result, item.data_format, self._container, item.retry_count
            )
        return Empty()

    async def task_result(self, request: api_pb2.TaskResultRequest) -> Empty:
        self._container.reported = request.result
        return Empty()

    async def container_stop(
        self, _: api_pb2.ContainerStopRequest
    ) -> api_pb2.ContainerStopResponse:
        return api_pb2.ContainerStopResponse()

    async def function_get_dynamic_concurrency(
        self, _: api_pb2.FunctionGetDynamicConcurrencyRequest
    ) -> api_pb2.FunctionGetDynamicConcurrencyResponse:
        return api_pb2.FunctionGetDynamicConcurrencyResponse(concurrency=1)

    async def blob_create(self, _: api_pb2.BlobCreateRequest) -> api_pb2.BlobCreateResponse:
        return self._scheduler.blobs.create()

    async def blob_get(self, request: api_pb2.BlobGetRequest) -> api_pb2.BlobGetResponse:
        return self._scheduler.blobs.get(request.blob_id)
