"""What the local Modal must do for its word on our backend to count."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import modal
import psutil
import pytest

from tests.doubles.modal import sample
from tests.doubles.modal.server import LocalModal
from tests.doubles.modal.service import Service
from tests.doubles.modal.visible import local_modal

BIG = 100_000
"""Characters: more than travel in a message of a spawned call."""


@pytest.fixture
async def server() -> AsyncIterator[LocalModal]:
    async with local_modal() as server:
        await sample.make_app().deploy.aio()
        yield server
        assert not server.rpcs.missing


def function(name: str) -> "modal.Function[..., object, object]":
    return modal.Function.from_name(sample.APP, name)


async def test_each_call_has_a_container_of_its_own(server: LocalModal) -> None:
    pids = [await function("pid").remote.aio() for _ in range(2)]
    assert len(set(pids)) == 2
    assert server.scheduler.begun == 2


async def test_what_a_function_raises_is_raised_here(server: LocalModal) -> None:
    with pytest.raises(ValueError, match="no such thing"):
        await function("raise_it").remote.aio("no such thing")


async def test_large_arguments_and_answers_travel_beside_the_messages(server: LocalModal) -> None:
    call = await function("echo").spawn.aio("x" * BIG)
    assert await call.get.aio() == "x" * BIG
    assert server.rpcs.called["BlobCreate"] > 0


async def test_a_call_over_its_time_limit_ends_with_its_container(server: LocalModal) -> None:
    call = await function("hang").with_options(timeout=3).spawn.aio(60)
    with pytest.raises(modal.exception.FunctionTimeoutError):
        await call.get.aio()
    assert server.scheduler.running == ()


async def running(server: LocalModal) -> psutil.Process:
    async with asyncio.timeout(30):
        while not server.scheduler.running:  # noqa: ASYNC110 - it has no event of its own
            await asyncio.sleep(0.02)
    return psutil.Process(server.scheduler.running[0].pid)


async def test_a_cancelled_call_ends_with_its_container(server: LocalModal) -> None:
    call = await function("hang").spawn.aio(60)
    process = await running(server)
    await call.cancel.aio(terminate_containers=True)
    with pytest.raises(modal.exception.RemoteError, match="cancelled"):
        await call.get.aio()
    assert not process.is_running()


async def test_a_call_outlives_the_client_that_began_it(server: LocalModal) -> None:
    name = (await function("hang").spawn.aio(2)).object_id
    await (await modal.Client.from_env.aio()).close.aio()
    assert await modal.FunctionCall.from_id(name).get.aio() is None
    assert server.scheduler.begun == 1


async def test_a_lost_machine_fails_its_call_alone(server: LocalModal) -> None:
    lost = await function("hang").spawn.aio(60)
    await running(server)
    server.lose_machine()
    with pytest.raises(modal.exception.RemoteError, match="code -9"):
        await lost.get.aio()
    assert await function("echo").remote.aio("still here") == "still here"


async def test_a_failed_call_is_tried_as_often_as_was_asked(
    server: LocalModal, tmp_path: Path
) -> None:
    call = await function("die").spawn.aio(str(tmp_path / "tries"))
    with pytest.raises(modal.exception.RemoteError):
        await call.get.aio()
    assert (tmp_path / "tries").read_text() == "xxx"


async def test_calls_beyond_the_limit_wait_and_keep_their_order(server: LocalModal) -> None:
    one = function("pid").with_options(max_containers=1)
    calls = [await one.spawn.aio() for _ in range(3)]
    pids = [await call.get.aio() for call in calls]
    assert len(set(pids)) == 3
    began = [server.scheduler.inputs[f"in-{n}"].started_at for n in (2, 4, 6)]
    assert began == sorted(began)


async def test_what_was_not_deployed_is_not_found(server: LocalModal) -> None:
    with pytest.raises(modal.exception.NotFoundError, match="nothing"):
        await function("nothing").remote.aio()


async def test_the_gpu_asked_for_is_kept_with_the_call(server: LocalModal) -> None:
    await function("echo").with_options(gpu="H100!:2").remote.aio("x")
    (bound,) = [each for each in server.rpcs.deployed.functions.values() if each.options]
    assert (bound.gpu, bound.single_use) == ("H100!:2", True)


async def test_a_server_that_is_closed_hangs_up_on_who_does_not(tmp_path: Path) -> None:
    server = Service().server()
    await server.start(path=str(tmp_path / "s"))
    reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
    await reader.read(1)  # it greets whoever connects
    server.close()
    await server.wait_closed()
    async with asyncio.timeout(5):
        while await reader.read(1 << 10):
            continue
    assert reader.at_eof()
    writer.close()
    await writer.wait_closed()
