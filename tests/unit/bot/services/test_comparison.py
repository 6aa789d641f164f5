import difflib

import pytest

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.publication import PublishRequest
from bot.services.comparison import MOST_LINES, compare
from bot.services.publishing.publish import publish
from runners.contract.evaluation import CaseKind
from runners.contract.verdict import Verdict
from tests.doubles.factories import make_case, make_measurement, make_task
from tests.doubles.place import Place


async def ran(place: Place, source: bytes, time_ns: float) -> SubmissionId:
    case = make_case(CaseKind.BENCHMARK, measurement=make_measurement(time_ns, 0))
    submission = await place.submit(content=source)
    await place.judged(submission, cases=(case,))
    return submission.id


async def test_times_and_the_difference_of_the_sources_are_given(place: Place) -> None:
    first = await ran(place, b"a = 1\nb = 2\n", 300)
    second = await ran(place, b"a = 1\nb = 3", 100)
    found = await compare(place.store, place.clock, Viewer(place.ada), first=first, second=second)
    assert found.first.verdicts == {"CPU": Verdict.PASSED}
    assert found.first.scores["CPU"].time_ns == 300
    assert found.second.scores["CPU"].time_ns == 100
    lines = found.difference.splitlines()
    assert lines[0].startswith(f"--- #{first} ")
    assert {"-b = 2", "+b = 3", " a = 1"} <= set(lines)
    assert found.difference.endswith("\n")
    assert found.side_by_side == (("a = 1", " ", "a = 1"), ("b = 2", "|", "b = 3"))


async def test_lines_that_only_one_side_has_are_marked(place: Place) -> None:
    first = await ran(place, b"a\nb\nc\nd\n", 300)
    second = await ran(place, b"a\nx\nd\ne\n", 100)
    found = await compare(place.store, place.clock, Viewer(place.ada), first=first, second=second)
    assert found.side_by_side == (
        ("a", " ", "a"),
        ("b", "|", "x"),
        ("c", "<", ""),
        ("d", " ", "d"),
        ("", ">", "e"),
    )


async def test_lines_that_end_in_another_way_are_the_same(place: Place) -> None:
    first = await ran(place, b"a = 1\nb = 2\n", 300)
    second = await ran(place, b"a = 1\r\nb = 2", 100)
    found = await compare(place.store, place.clock, Viewer(place.ada), first=first, second=second)
    assert found.difference == ""
    assert [mark for _, mark, _ in found.side_by_side] == [" ", " "]


async def test_the_difference_is_what_patch_and_people_know(place: Place) -> None:
    before = [f"line {number}" for number in range(40)]
    after = [*before[:5], "new", *before[5:20], "other", *before[21:38]]
    first = await ran(place, "\n".join(before).encode(), 300)
    second = await ran(place, "\n".join(after).encode(), 100)
    found = await compare(place.store, place.clock, Viewer(place.ada), first=first, second=second)
    old, new = (f"#{number} kernel.py" for number in (first, second))
    known = difflib.unified_diff(before, after, old, new, lineterm="")
    assert found.difference.splitlines() == list(known)
    assert [line for line, mark, _ in found.side_by_side if mark != ">"] == before
    assert [line for _, mark, line in found.side_by_side if mark != "<"] == after


async def test_too_many_lines_are_not_compared(place: Place) -> None:
    lines = [f"v{number % 900}" for number in range(MOST_LINES + 1)]
    first = await ran(place, "\n".join(lines).encode(), 300)
    second = await ran(place, "\n".join(reversed(lines)).encode(), 100)
    found = await compare(place.store, place.clock, Viewer(place.ada), first=first, second=second)
    assert found.too_long
    assert (found.difference, found.side_by_side) == ("", ())


async def test_who_may_not_see_a_source_may_not_compare_it(place: Place) -> None:
    own = await place.submit()
    other = await place.submit(await place.person("bob"))
    with pytest.raises(UserError, match="another person"):
        await compare(place.store, place.clock, Viewer(place.ada), first=own.id, second=other.id)


async def test_submissions_to_two_boards_are_not_compared(place: Place) -> None:
    await publish(place.store, place.clock, PublishRequest(place.ada), make_task(name="sort"))
    first, second = await place.submit(), await place.submit(board="sort")
    with pytest.raises(UserError, match="different boards"):
        await compare(place.store, place.clock, Viewer(place.ada), first=first.id, second=second.id)
