"""The times of each benchmark are compared with those that the viewer may see."""

import pytest

from bot.domain.board import NOBODY, Access, Viewer, Visibility
from bot.domain.ids import SubmissionId
from bot.domain.reference_times import OtherTimes
from bot.services.comparison import other_times
from bot.services.status import submission_status
from tests.doubles.exhibition import Exhibition, make_exhibition
from tests.doubles.shapes import GPU, add_shapes, referenced, shaped


@pytest.fixture
async def shown() -> Exhibition:
    shown = await make_exhibition(rounds=0)
    await add_shapes(shown)
    await referenced(shown, 40_000, 80_000, 400_000)
    return shown


async def found(shown: Exhibition, number: SubmissionId, viewer: Viewer) -> OtherTimes:
    return await other_times(shown.store, viewer, await submission_status(shown.store, number), GPU)


async def test_a_run_meets_the_reference_the_leader_and_the_viewers_best(shown: Exhibition) -> None:
    lead = await shaped(shown, "Ken", 10_000, 20_000, 200_000)
    best = await shaped(shown, "Ada", 20_000, 30_000, 300_000)
    now = await shaped(shown, "Ada", 25_000, 35_000, 350_000)
    them = (await found(shown, now, Viewer(shown.people["Ada"]))).others
    assert [(each.name, each.submission) for each in them] == [
        ("reference", None), ("first", lead), ("your best", best),
    ]  # fmt: skip
    assert [round(each.times["size: 1048576"].time_ns) for each in them] == [80_000, 20_000, 30_000]
    other = (await found(shown, now, Viewer(shown.people["Grace"]))).others
    assert [each.name for each in other] == ["reference", "first"]
    own = (await found(shown, lead, Viewer(shown.people["Ken"]))).others
    assert [each.name for each in own] == ["reference"]


async def test_each_benchmark_needs_what_the_task_says(shown: Exhibition) -> None:
    number = await shaped(shown, "Ada", 20_000, 30_000, 300_000)
    work = (await found(shown, number, Viewer(NOBODY))).work
    assert work is not None
    assert [(each.bytes, each.flops) for each in work.values()] == [
        (12 * size, 24 * size) for size in (1 << 14, 1 << 20, 1 << 24)
    ]
    assert work["size: 1048576"].floor_ns == pytest.approx(12 * (1 << 20) / 300)


async def test_a_viewer_who_no_longer_sees_the_board_gets_no_other_times(shown: Exhibition) -> None:
    await shaped(shown, "Ken", 10_000, 20_000, 200_000)
    now = await shaped(shown, "Grace", 25_000, 35_000, 350_000)
    await shown.store.boards.restrict(
        shown.boards["shapes"].id, Access(visibility=Visibility.PRIVATE)
    )
    assert await found(shown, now, Viewer(shown.people["Grace"])) == OtherTimes()
