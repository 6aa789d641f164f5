"""Tests of what a submission may be compared with: never one whose source is hidden."""

import pytest

from bot.domain.board import NOBODY, Access, SourceVisibility, Viewer, Visibility
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, SubmissionId
from bot.services.comparison import Comparable, comparable, compare
from runners.contract.evaluation import CaseKind
from runners.contract.task import Mode
from tests.doubles.factories import make_case, make_measurement
from tests.doubles.place import Place


async def ranked(place: Place, person: PersonId, time_ns: float) -> SubmissionId:
    submission = await place.submit(person)
    case = make_case(CaseKind.BENCHMARK, measurement=make_measurement(time_ns, 0))
    await place.judged(submission, cases=(case,))
    return submission.id


async def played(place: Place) -> dict[str, SubmissionId]:
    """Ada, Bob and Carol, who each submitted something twice."""
    bob, carol = await place.person("bob"), await place.person("carol")
    return {
        "bob": await ranked(place, bob, 300),
        "carol": await ranked(place, carol, 200),
        "ada": await ranked(place, place.ada, 100),
        "a test of bob's": (await place.submit(bob, mode=Mode.TEST)).id,
        "bob again": (await place.submit(bob)).id,
    }


async def named(place: Place, viewer: Viewer, number: SubmissionId) -> list[set[SubmissionId]]:
    """The numbers in each group; all of them can be compared indeed."""
    found: Comparable = await comparable(place.store, place.clock, viewer, number)
    groups = [
        {each.submission.id for each in found.versions},
        {each.submission.id for each in found.own},
        {each.score.submission for each in found.others},
    ]
    for other in set().union(*groups):
        await compare(place.store, place.clock, viewer, first=number, second=other)
    return groups


async def test_while_sources_are_hidden_there_are_ones_own_alone(place: Place) -> None:
    made = await played(place)
    bob = Viewer(await place.person("bob"))
    assert await named(place, bob, made["bob"]) == [
        {made["a test of bob's"], made["bob again"]}, set(), set(),
    ]  # fmt: skip
    for viewer in (bob, Viewer(NOBODY)):
        assert await named(place, viewer, made["carol"]) == [set(), set(), set()]


async def test_where_sources_are_shown_everybodys_best_are_there(place: Place) -> None:
    await place.store.boards.restrict(place.board.id, Access(source=SourceVisibility.ALWAYS))
    made = await played(place)
    bob = Viewer(await place.person("bob"))
    assert await named(place, bob, made["bob"]) == [
        {made["a test of bob's"], made["bob again"]}, set(), {made["ada"], made["carol"]},
    ]  # fmt: skip
    assert await named(place, bob, made["carol"]) == [
        set(), {made["bob"], made["bob again"], made["a test of bob's"]}, {made["ada"]},
    ]  # fmt: skip
    assert await named(place, Viewer(NOBODY), made["bob"]) == [
        {made["bob again"]}, set(), {made["ada"], made["carol"]},
    ]  # fmt: skip


async def test_of_a_board_that_one_does_not_see_there_are_ones_own_alone(place: Place) -> None:
    made = await played(place)
    private = Access(Visibility.PRIVATE, source=SourceVisibility.ALWAYS)
    await place.store.boards.restrict(place.board.id, private)
    bob = Viewer(await place.person("bob"))
    own, *others = await named(place, bob, made["bob"])
    assert own == {made["a test of bob's"], made["bob again"]}
    assert others == [set(), set()]
    with pytest.raises(UserError, match="no submission"):
        await comparable(place.store, place.clock, bob, made["ada"])
