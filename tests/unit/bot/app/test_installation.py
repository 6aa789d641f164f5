"""Tests of what is wired together, where a whole process is not needed to see it."""

import asyncio
import fcntl
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from typing_extensions import override

from bot.app.context import OpenDoor, OpenPodium, SystemClock
from bot.app.installation import Installation
from bot.cli.errors import failure_of
from bot.domain.errors import SetupError
from bot.ports.outside import ServiceConnection
from bot.settings import Settings
from runners.backends import fake
from runners.contract.runner import Capabilities, RunnerError
from tests.doubles.factories import make_capabilities
from tests.doubles.memory_store import MemoryStore


class BrokenRunner(fake.FakeRunner):
    """A runner whose harness cannot start."""

    def __init__(self) -> None:
        super().__init__("broken", make_capabilities())

    @override
    async def capabilities(self) -> Capabilities:
        raise RunnerError("the sandbox lacks landlock")


def _installation(data_dir: Path, *runners: str) -> Installation:
    return Installation(Settings(data_dir=data_dir, runners=runners or ("fake",)))


def _podium() -> OpenPodium:
    clock = SystemClock()
    return OpenPodium(MemoryStore(clock), clock, "memory", served=False, shared=False)


async def _works_for_ever(working: AbstractAsyncContextManager[None]) -> None:
    async with asyncio.timeout(10), working:
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    "work",
    [
        lambda installation, podium: installation.working(podium, [BrokenRunner()]),
        lambda installation, podium: installation.working_in_turn(podium),
    ],
)
async def test_a_runner_that_cannot_serve_is_said_instead_of_waited_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    work: Callable[[Installation, OpenPodium], AbstractAsyncContextManager[None]],
) -> None:
    monkeypatch.setattr(fake, "create", lambda **_: BrokenRunner())
    with pytest.raises(ExceptionGroup) as raised:
        await _works_for_ever(work(_installation(tmp_path), _podium()))
    failure = failure_of(raised.value)
    assert failure.code == "runner"
    assert "the sandbox lacks landlock" in failure.message


class SlowRunner(fake.FakeRunner):
    """A runner that has not answered yet."""

    def __init__(self) -> None:
        super().__init__("slow", make_capabilities())
        self.answers = asyncio.Event()

    @override
    async def capabilities(self) -> Capabilities:
        await self.answers.wait()
        return await super().capabilities()


def _looks_ready(data_dir: Path) -> bool:
    """As the health check of an image looks."""
    with (data_dir / "ready.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


async def _turns_out(data_dir: Path, *, ready: bool) -> None:
    async with asyncio.timeout(10):
        while _looks_ready(data_dir) is not ready:  # noqa: ASYNC110 - a lock wakes nobody
            await asyncio.sleep(0.01)


async def test_it_is_ready_once_its_runners_have_answered_and_its_lines_stand(
    tmp_path: Path,
) -> None:
    installation, runner, line = _installation(tmp_path), SlowRunner(), ServiceConnection("discord")
    left = asyncio.Event()

    async def serve() -> None:
        doors = [OpenDoor("web"), OpenDoor("discord", line)]
        async with installation.ready([runner], doors) as offers:
            assert [name for name, _ in offers] == ["slow"]
            await left.wait()

    serving = asyncio.create_task(serve())
    await asyncio.sleep(0)
    assert not _looks_ready(tmp_path)
    runner.answers.set()
    await asyncio.sleep(0.01)
    assert not _looks_ready(tmp_path)
    line.measure = lambda: 0.2
    await _turns_out(tmp_path, ready=True)
    left.set()
    await serving
    assert not _looks_ready(tmp_path)


async def test_who_cannot_serve_is_never_ready(tmp_path: Path) -> None:
    with pytest.raises(RunnerError):
        async with _installation(tmp_path).ready([BrokenRunner()]):
            pass
    assert not (tmp_path / "ready.lock").exists()


async def test_two_judges_of_one_data_folder_are_refused(tmp_path: Path) -> None:
    installation, podium = _installation(tmp_path), _podium()
    async with installation.working(podium, [fake.create()]):
        with pytest.raises(SetupError, match="disturb each other's times"):
            await _works_for_ever(installation.working(podium, [fake.create()]))


async def test_who_works_in_turn_stops_waiting_for_it_when_it_is_over(tmp_path: Path) -> None:
    installation, podium = _installation(tmp_path), _podium()
    async with (
        installation.working(podium, [fake.create()]),
        asyncio.timeout(10),
        installation.working_in_turn(podium),
    ):
        await asyncio.sleep(0.05)
        began = time.monotonic()
    assert time.monotonic() - began < 5


async def test_a_runner_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    for names in (("fake", "fake"), ("local", "local_process")):
        with pytest.raises(SetupError, match=r"PODIUM_RUNNERS names the runner .* twice"):
            async with _installation(tmp_path, *names).runners():
                pass


async def test_a_database_that_does_not_answer_is_missing(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path, runners=("fake",), database_url="postgresql://ada:pw9@127.0.0.1:1/x"
    )
    found = {each.name: each for each in await Installation(settings).requirements()}
    postgres = found["Postgres"]
    assert not postgres.found
    assert not postgres.optional
    assert "no database at 127.0.0.1:1/x" in postgres.detail
    assert postgres.remedy == "start it, or correct DATABASE_URL"
    assert "pw9" not in repr(postgres)
