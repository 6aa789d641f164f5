"""The functions of the local Modal, their calls, and the input of each call."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from modal_proto import api_pb2

if TYPE_CHECKING:
    from tests.doubles.modal.container import Container

NO_LIMIT = 1_000_000

Result = api_pb2.GenericResult


@dataclass(slots=True)
class Function:
    """A deployed function, or a variant of it that `with_options` created."""

    id: str
    app: str
    definition: api_pb2.Function
    options: api_pb2.FunctionOptions | None = None

    def _option(self, name: str) -> int:
        if self.options is not None and self.options.HasField(name):  # type: ignore[arg-type]  # a name
            return int(getattr(self.options, name))
        return int(getattr(self.definition, name))

    @property
    def timeout_s(self) -> int:
        """The time limit of an input."""
        return self._option("timeout_secs") or 300

    @property
    def limit(self) -> int:
        """The most containers at once."""
        return self._option("concurrency_limit") or NO_LIMIT

    @property
    def idle_s(self) -> int:
        """How long an idle container waits for another input."""
        return self._option("task_idle_timeout_secs") or 60

    @property
    def single_use(self) -> bool:
        """Whether a container accepts only one input."""
        return self.definition.single_use_containers

    @property
    def retries(self) -> int:
        """How often a failed input is tried again."""
        options = self.options
        given = options is not None and options.HasField("retry_policy")
        policy = options.retry_policy if options is not None and given else None
        return (policy or self.definition.retry_policy).retries

    @property
    def gpu(self) -> str:
        """The requested GPU in Modal's notation, such as `H100!:2`; empty if none was requested."""
        resources = self.definition.resources
        if self.options is not None and self.options.HasField("resources"):
            resources = self.options.resources
        asked = resources.gpu_config
        return asked.gpu_type + (f":{asked.count}" if asked.count > 1 else "")


@dataclass(slots=True, eq=False)
class Call:
    """One spawned call."""

    id: str
    function: Function
    inputs: dict[int, "Input"] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)


@dataclass(slots=True, eq=False)
class Input:
    """The input of a call, and its output once there is one."""

    id: str
    index: int
    call: Call
    given: api_pb2.FunctionInput
    tries: int = 0
    container: "Container | None" = None
    started_at: float = 0.0
    output: api_pb2.FunctionGetOutputsItem | None = None

    def end(self, result: Result, data_format: "api_pb2.DataFormat.ValueType") -> None:
        """Store its output."""
        self.output = api_pb2.FunctionGetOutputsItem(
            result=result,
            idx=self.index,
            input_id=self.id,
            data_format=data_format,
            task_id=self.container.id if self.container else "",
            input_started_at=self.started_at,
            output_created_at=time.time(),
            retry_count=self.tries,
        )
