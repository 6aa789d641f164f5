"""Ray's driver in a separate process: commands on standard input, replies on standard output.

It is separate for three reasons. Ray kills a connected process if it cannot reach Ray's head for a
minute. Ray unpickles what nodes send, which must not happen in a process with Podium's secrets. Ray
changes the signal handlers and the environment of the process that imports it.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import IO, Any

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayError, RpcError

from runners.backends.ray_cluster import protocol
from runners.backends.ray_cluster.node import SlotActor
from runners.backends.ray_cluster.token_check import check
from runners.contract.runner import RunnerError

NAMESPACE = "podium"
_PACKAGE = Path(__file__).resolve().parents[2]
_AT_ONCE = 16
"""The most requests that a slot serves at once; most of them only wait."""


class _NoSlotError(Exception):
    """There is no slot of this name any more."""


class Driver:
    """Executes commands, and caches Ray's handles of the slots."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._slots: dict[str, Any] = {}

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Execute commands concurrently until the input ends."""
        tasks: set[asyncio.Task[None]] = set()
        while line := await reader.readline():
            task = asyncio.create_task(self._serve_one(protocol.Command.model_validate_json(line)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _serve_one(self, command: protocol.Command) -> None:
        try:
            text, fault = await self._execute(command), None
        except (ActorDiedError, _NoSlotError) as error:
            text = f"the slot on its node was lost: {_first_line(error)}"
            fault = protocol.DriverFault.LOST
        except (ActorUnavailableError, RpcError, TimeoutError, OSError) as error:
            text, fault = f"Ray: {_first_line(error)}", protocol.DriverFault.UNAVAILABLE
        except (RayError, RuntimeError, ValueError) as error:
            text, fault = f"Ray: {_first_line(error)}", protocol.DriverFault.ERROR
        self.reply(protocol.DriverReply(number=command.number, text=text, fault=fault))

    def reply(self, reply: protocol.DriverReply) -> None:
        """Write a reply as one line."""
        self._out.write(reply.model_dump_json().encode() + b"\n")
        self._out.flush()

    async def _execute(self, command: protocol.Command) -> str:
        match command.operation:
            case protocol.DriverOperation.RESOURCES:
                return (await asyncio.to_thread(_resources)).model_dump_json()
            case protocol.DriverOperation.PLACE:
                self._slots[command.slot] = await asyncio.to_thread(_place, command)
                return ""
            case protocol.DriverOperation.CALL:
                return await self._call_slot(command)
            case protocol.DriverOperation.END:
                return await asyncio.to_thread(self._end, command.slot)
            case protocol.DriverOperation.SLOTS:
                return (await asyncio.to_thread(_slot_names)).model_dump_json()

    async def _call_slot(self, command: protocol.Command) -> str:
        slot = await asyncio.to_thread(self._slot, command.slot)
        reference = getattr(slot, command.method).remote(*command.arguments)
        answer = asyncio.wrap_future(reference.future())
        done, _ = await asyncio.wait({answer}, timeout=command.within_s)
        if not done:
            raise TimeoutError(f"no answer within {command.within_s:.0f} s")
        return str(answer.result())

    def _slot(self, name: str) -> Any:  # noqa: ANN401 - a handle of Ray's
        if name not in self._slots:
            try:
                self._slots[name] = ray.get_actor(name, namespace=NAMESPACE)
            except ValueError as error:
                raise _NoSlotError(f"there is no slot {name} any more") from error
        return self._slots[name]

    def _end(self, name: str) -> str:
        try:
            ray.kill(self._slot(name), no_restart=True)
        except _NoSlotError:
            return ""
        finally:
            self._slots.pop(name, None)
        return ""


def _resources() -> protocol.Resources:
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return protocol.Resources(
        nodes=tuple({name: float(n) for name, n in node.items()} for node in nodes)
    )


def _place(command: protocol.Command) -> Any:  # noqa: ANN401 - a handle of Ray's
    demand = protocol.demand(_resources().resource_name(command.kind), command.gpus)
    gpus = demand.pop("GPU", 0)
    return (
        ray.remote(SlotActor)
        .options(
            name=command.slot,
            namespace=NAMESPACE,
            lifetime="detached",  # outlives this process, because the next worker may need it
            num_cpus=0,
            num_gpus=gpus,
            resources=demand,
            max_restarts=0,  # Podium's queue retries
            max_task_retries=0,
            max_concurrency=_AT_ONCE,
        )
        .remote(command.kind, "strict" if command.strict else "")
    )


def _slot_names() -> protocol.SlotNames:
    actors = ray.util.list_named_actors(all_namespaces=True)
    return protocol.SlotNames(
        names=tuple(actor["name"] for actor in actors if actor["namespace"] == NAMESPACE)
    )


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


def connect() -> None:
    """Connect to the cluster at RAY_ADDRESS; RunnerError (with advice) if that fails."""
    address = os.environ.get("RAY_ADDRESS", "")
    check(address)
    try:
        ray.init(
            address=address,
            namespace=NAMESPACE,
            # Ray sends only `runners/` of Podium's code to a node.
            runtime_env={"py_modules": [str(_PACKAGE)], "excludes": ["**/__pycache__/**"]},
            log_to_driver=False,
            configure_logging=False,
        )
    except (RayError, RuntimeError, ValueError, OSError) as error:
        raise RunnerError(f"Ray at {address}: {_first_line(error)}") from error


async def _serve(driver: Driver) -> None:
    reader = asyncio.StreamReader(limit=protocol.LINES_MAX)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await driver.serve(reader)


def main() -> int:
    """Connect, report it, and serve until standard input ends."""
    driver = Driver(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # Ray's own output must not mix with the replies
    try:
        connect()
    except RunnerError as error:
        driver.reply(
            protocol.DriverReply(number=0, text=str(error), fault=protocol.DriverFault.ERROR)
        )
        return 1
    driver.reply(protocol.DriverReply(number=0))
    asyncio.run(_serve(driver))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
