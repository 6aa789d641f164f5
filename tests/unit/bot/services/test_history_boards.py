"""Tests of a board's records and of the gallery of its winning kernels."""

from datetime import timedelta

import pytest

from bot.domain.board import NOBODY, Access, SourceVisibility, Viewer, Visibility
from bot.domain.errors import UserError
from bot.domain.submission import Submission
from bot.services.history import Gallery, gallery, person_profile, records_of
from runners.contract.evaluation import CaseKind
from tests.doubles.clock import ManualClock
from tests.doubles.factories import make_case, make_measurement
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place

ANYBODY = Viewer(NOBODY)
DAY = timedelta(days=1)


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


async def ranked(place: Place, name: str, time_ns: float) -> Submission:
    made = await place.submit(await place.person(name))
    case = make_case(CaseKind.BENCHMARK, measurement=make_measurement(time_ns, 0))
    await place.judged(made, cases=(case,))
    place.clock.advance(60)
    return made


async def seen(place: Place, viewer: Viewer = ANYBODY) -> Gallery:
    return await gallery(place.store, place.clock, viewer, place.board.name)


async def close(place: Place) -> None:
    deadline = place.clock.now() + DAY
    await place.store.boards.configure(place.board.id, place.board.gpus, deadline)
    place.clock.advance(2 * 86_400)


async def test_the_winning_kernels_are_shown_when_the_board_has_closed(place: Place) -> None:
    made = [await ranked(place, name, 100.0 * n) for n, name in enumerate("abcd", start=1)]
    await place.store.submissions.write_note(made[0].id, "why")
    assert (await seen(place)).is_open
    assert (await seen(place)).winners == ()
    await close(place)
    found = await seen(place)
    assert not found.is_open
    assert [each.submission.id for each in found.winners] == [each.id for each in made[:3]]
    assert found.winners[0].submission.note == "why"
    assert found.winners[0].source == await place.store.submissions.source(made[0].id)
    assert found.hidden == 0


@pytest.mark.parametrize("later", [SourceVisibility.NEVER, SourceVisibility.AFTER_DEADLINE])
async def test_a_source_that_the_board_never_shows_is_in_no_gallery(
    place: Place, later: SourceVisibility
) -> None:
    """Not even if that was changed after the source was submitted."""
    await place.store.boards.restrict(place.board.id, Access(source=SourceVisibility.NEVER))
    await ranked(place, "a", 100.0)
    await place.store.boards.restrict(place.board.id, Access(source=later))
    await ranked(place, "b", 200.0)
    await close(place)
    found = await seen(place, Viewer(place.ada, sees_all=True))
    expected = [] if later is SourceVisibility.NEVER else ["b"]
    assert [each.standing.score.person_name for each in found.winners] == expected
    assert found.hidden == 2 - len(expected)


async def test_a_private_board_has_a_gallery_for_its_members_alone(place: Place) -> None:
    made = await ranked(place, "a", 100.0)
    await close(place)
    await place.store.boards.restrict(place.board.id, Access(visibility=Visibility.PRIVATE))
    with pytest.raises(UserError, match="no board named"):
        await seen(place)
    assert [each.submission.id for each in (await seen(place, Viewer(place.ada))).winners] == [
        made.id
    ]


async def test_records_of_all_gpu_types_come_newest_first(place: Place) -> None:
    made = [await ranked(place, *run) for run in (("a", 300.0), ("b", 400.0), ("a", 200.0))]
    board, found = await records_of(place.store, place.clock, ANYBODY, place.board.name)
    assert board.id == place.board.id
    assert [each.submission for each in found] == [made[2].id, made[0].id]


async def test_medals_are_won_when_the_board_has_closed(place: Place) -> None:
    await ranked(place, "a", 100.0)
    second = await ranked(place, "b", 200.0)
    profile = await person_profile(place.store, ANYBODY, second.person)
    now = place.clock.now()
    assert profile.top_places(now, closed=True) == (0, 0, 0)
    assert profile.top_places(now, closed=False) == (0, 1, 0)
    await close(place)
    profile = await person_profile(place.store, ANYBODY, second.person)
    assert profile.top_places(place.clock.now(), closed=True) == (0, 1, 0)
    assert profile.top_places(place.clock.now(), closed=False) == (0, 0, 0)
