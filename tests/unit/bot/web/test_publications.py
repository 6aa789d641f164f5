"""Tests of checks over the life of a process: what a killed one had done is not done again."""

from collections.abc import Callable
from datetime import timedelta
from unittest.mock import Mock

import pytest

from bot.domain.board import NOBODY, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PublicationId
from bot.domain.publication import NewPublication, PublishRequest, UnsoundTaskError
from bot.domain.tasks import grading
from bot.domain.tasks.grading import HOW_TO_CHOOSE
from bot.domain.tasks.lint import TaskReport
from bot.services.publishing import queued_runner
from bot.services.publishing.engine import KEEP
from bot.services.publishing.own_checks import Check
from bot.services.publishing.publish import NO_BOARD, REQUEST, publish, read_upload
from bot.services.publishing.state import PublicationState, outcome_of_error
from bot.web.context import FRONT_END, WebContext
from bot.web.publications import checking, checks_of, remarks_of
from runners.contract.task import Grader
from tests.doubles.agents import make_door
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place
from tests.doubles.task_zips import WITH_EVAL, packed

LEASE = timedelta(seconds=30)
EVAL = "raise SystemExit(3)\n"


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


@pytest.fixture
def door(place: Place) -> WebContext:
    return make_door(place.store, place.clock)


async def waiting(
    place: Place, state: PublicationState | None = None, file: bytes | None = None
) -> PublicationId:
    """A check that was handed in; with a `state`, a process was killed in it."""
    request = PublishRequest(place.ada, "double", ("CPU",), onto=NO_BOARD)
    stored, releases = REQUEST.dump_json(request).decode(), place.store.publications
    number = await releases.add(NewPublication(FRONT_END, place.ada, file or packed()[2], stored))
    if state is not None:
        await releases.claim(FRONT_END, "killed", LEASE)
        await releases.save_state(number, "killed", state=state.model_dump_json())
        place.clock.advance(LEASE.total_seconds() + 1)
    return number


async def ended(door: WebContext, number: PublicationId) -> str:
    """What is told once it has ended."""
    async with checking(door):
        for _ in range(500):
            note = await door.store.publications.summary(FRONT_END, number)
            if note is not None and note.ended_at is not None:
                break
            await _moment()
    check = await checks_of(door).get(Viewer(NOBODY, sees_all=True), number)
    assert check.outcome is not None
    return " ".join(text for text, _ in remarks_of(check))


async def _moment() -> None:
    import asyncio  # noqa: PLC0415

    await asyncio.sleep(0.01)


async def test_what_was_published_before_a_kill_is_told_as_published(
    door: WebContext, place: Place
) -> None:
    number = await waiting(place, PublicationState(publishing=True))
    request = PublishRequest(place.ada, "double", ("CPU",))
    _, parsed = await read_upload(packed()[2], request)
    await publish(place.store, place.clock, request, parsed.task)
    assert "double on CPU is published." in await ended(door, number)
    board = await place.store.boards.find("double")
    assert board is not None
    assert len(await place.store.boards.versions(board.id)) == 1


async def test_that_holds_for_the_grader_that_the_check_chose(
    door: WebContext, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.services.publishing.publish.TASKS", Mock(call=_in_this_process))
    monkeypatch.setattr(grading, "ONE_CALL", frozenset({grading.script_hash(EVAL)}))
    state = PublicationState(publishing=True, grader=Grader.POPCORN, grading="It was not compared.")
    file = packed(task__yml=WITH_EVAL, eval__py=EVAL)[2]
    number = await waiting(place, state, file)
    request = PublishRequest(place.ada, "double", ("CPU",))
    _, parsed = await read_upload(file, request)
    own = parsed.task_for(Grader.POPCORN)
    assert (parsed.task.grader, own.grader) == (Grader.NATIVE, Grader.POPCORN)
    await publish(place.store, place.clock, request, own)
    assert await ended(door, number) == "It was not compared. double on CPU is published."


async def _in_this_process(read: Callable[..., object], *given: object) -> object:
    return read(*given)


async def test_without_a_runner_nothing_is_published_and_that_is_said(
    door: WebContext, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued_runner, "WORKER_S", 0.0)
    number = await waiting(place)
    assert "no runner is available" in await ended(door, number)
    assert await place.store.boards.find("double") is None
    with pytest.raises(UserError, match="does not exist"):
        await checks_of(door).get(Viewer(await place.person("eve")), number)
    place.clock.advance(KEEP.total_seconds() + 1)
    await ended(door, await waiting(place))
    with pytest.raises(UserError, match="does not exist"):
        await checks_of(door).get(Viewer(place.ada), number)


def test_who_grades_is_the_first_line_and_a_difference_says_how_to_choose() -> None:
    report = TaskReport("double", "CPU", (), grading="They disagree.", undecided=True)
    outcome = outcome_of_error("double", UnsoundTaskError(report, "short"))
    assert outcome.title == "double on CPU: choose the grader"
    check = Check(PublicationId(1), "double", 1, PublicationState(outcome=outcome))
    (first, _), (last, _) = remarks_of(check)
    assert first == "They disagree."
    assert last == f"Nothing was published. To publish, {HOW_TO_CHOOSE}."


async def test_a_bug_ends_the_check_with_an_incident(
    door: WebContext, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> object:
        raise RuntimeError("a defect")

    monkeypatch.setattr("bot.services.publishing.engine.read_upload", broken)
    assert "please report incident" in await ended(door, await waiting(place))
