"""Finals decide the order of the first entries, in every store; see `bot.services.finals`."""

import pytest

from bot.domain.board import Viewer
from bot.domain.confirmation import ConfirmationState
from bot.domain.errors import UserError
from bot.domain.finals import Final, FinalRequest
from bot.domain.ids import SubmissionId
from bot.domain.notifications import NotificationKind
from bot.services.finals import cancel_final, finals_of, start_final
from bot.services.moderation import Decision
from bot.services.notify import announce_scores
from runners.contract.evaluation import EvaluationRequest
from runners.contract.verdict import Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.confirming import Arena
from tests.doubles.stored import LEASE, Scene

ROOM = "discord-channel:5"


@pytest.fixture
def arena(scene: Scene, clock: ManualClock) -> Arena:
    return Arena(scene, clock)


async def four(arena: Arena) -> dict[str, SubmissionId]:
    """Four people whose order was never contested."""
    times = {"ada": 100, "bob": 101, "eve": 102, "dan": 103}
    return {name: await arena.ran(name, time) for name, time in times.items()}


def admin(arena: Arena) -> Viewer:
    return Viewer(arena.scene.ada.id, sees_all=True)


async def start(arena: Arena, top: int = 10) -> Final:
    request = FinalRequest("vectoradd", None, top)
    decision = Decision(arena.scene.ada.id, "the end")
    (final,) = await start_final(arena.scene.store, admin(arena), decision, request)
    await arena.step()
    return final


async def newest(arena: Arena) -> Final:
    (final,) = await finals_of(arena.scene.store, admin(arena), "vectoradd")
    return final


def pair(request: EvaluationRequest) -> tuple[str, str]:
    """Who is compared with whom."""
    assert request.rival is not None
    return request.source.split()[1], request.rival.split()[1]


async def test_each_is_compared_with_the_one_before_and_moves_up_as_far_as_it_is_faster(
    arena: Arena,
) -> None:
    await four(arena)
    await start(arena)
    met = [pair(await arena.compared(ratio=1.01))]  # bob stays behind ada
    met += [pair(await arena.compared(ratio=0.98)), pair(await arena.compared(ratio=0.99))]
    assert (await newest(arena)).rows is None
    met += [pair(await arena.compared(ratio=1.0, half_width=0.002))]  # dan ties with bob
    assert met == [("bob", "ada"), ("eve", "bob"), ("eve", "ada"), ("dan", "bob")]

    final = await newest(arena)
    assert final.rows is not None
    assert [(each.rank, each.person_name) for each in final.rows] == [
        (1, "eve"),
        (2, "ada"),
        (3, "bob"),
        (3, "dan"),
    ]
    # The best time stays as it was, and the others follow from the ratios.
    times = [round(each.time_ns, 2) for each in final.rows]
    assert times == [99, 100, 101, 101]
    assert [each[1] for each in await arena.ranks()] == ["eve", "ada", "bob", "dan"]
    assert [each[0] for each in await arena.ranks()] == [1, 2, 3, 3]
    assert await arena.scene.store.confirmations.unfinished() == ()


async def test_only_the_first_k_are_compared(arena: Arena) -> None:
    await four(arena)
    await start(arena, top=2)
    await arena.compared(ratio=0.985)
    final = await newest(arena)
    assert final.rows is not None
    assert [each.person_name for each in final.rows] == ["bob", "ada"]
    assert await arena.scene.claim() == ()


async def test_a_second_final_is_refused_while_one_runs_and_may_come_later(arena: Arena) -> None:
    await four(arena)
    await start(arena, top=2)
    with pytest.raises(UserError) as refused:
        await start(arena)
    assert refused.value.code == "final-running"
    await arena.compared(ratio=1.005)
    assert (await start(arena, top=2)).rows is None


async def test_the_progress_is_shown(arena: Arena) -> None:
    await four(arena)
    await start(arena)
    found = await newest(arena)
    assert (found.compared, found.left, found.left_s) == (0, 3, None)
    await arena.compared(ratio=1.1)
    found = await newest(arena)
    assert (found.compared, found.left) == (1, 2)
    assert found.comparison_s == pytest.approx(1)
    assert found.left_s == pytest.approx(2)


async def test_the_result_is_announced_and_no_record_is(arena: Arena) -> None:
    await four(arena)
    await announce_scores(arena.scene.store)
    await arena.scene.store.listeners.listen(ROOM, frozenset({NotificationKind.RECORD}))
    await start(arena, top=2)
    await arena.compared(ratio=0.985)
    await announce_scores(arena.scene.store)
    (told,) = await arena.scene.store.outbox.claim("", "test", LEASE, 100)
    assert told.notification.text.startswith("Final of vectoradd (CPU): 1. bob")


async def test_an_entry_that_fails_for_good_is_not_ranked(arena: Arena) -> None:
    entries = await four(arena)
    await start(arena, top=3)
    await arena.answered(Verdict.CRASHED)
    for _ in range(2):
        alone = await arena.answered(Verdict.CRASHED)
        assert pair(alone) == ("bob", "bob")
    assert pair(await arena.compared(ratio=1.02)) == ("eve", "ada")
    final = await newest(arena)
    assert final.rows is not None
    assert [each.person_name for each in final.rows] == ["ada", "eve"]
    gone = await arena.scene.store.moderation.exclusion_of(entries["bob"])
    assert gone is not None
    assert "2 times with itself" in gone.reason


async def test_an_entry_that_fails_once_is_compared_again(arena: Arena) -> None:
    await four(arena)
    await start(arena, top=2)
    await arena.answered(Verdict.CRASHED)
    await arena.answered()
    await arena.compared(ratio=1.005)
    assert [each[1] for each in await arena.ranks()][:2] == ["ada", "bob"]


async def test_what_cannot_be_compared_keeps_its_order_and_shares_the_place(arena: Arena) -> None:
    await four(arena)
    await start(arena, top=2)
    for _ in range(3 + 4):  # the last four compare each of both with itself
        await arena.lost()
    final = await newest(arena)
    assert final.rows is not None
    assert [(each.person_name, each.ratio) for each in final.rows] == [("ada", None), ("bob", None)]
    state = (await arena.scene.store.finals.comparisons(final.id))[0].state
    assert state is ConfirmationState.UNDECIDED


async def test_runs_are_confirmed_before_a_final_begins_and_after_it_has_ended(
    arena: Arena,
) -> None:
    await arena.ran("ada", 100)
    await arena.ran("dan", 300)
    await arena.ran("bob", 90)
    await start(arena, top=2)
    await arena.compared(ratio=0.9)
    await arena.ran("eve", 80)
    assert pair(await arena.compared(ratio=1.2)) == ("ada", "bob")  # the final
    assert (await newest(arena)).rows is not None
    assert pair(await arena.compared(ratio=0.9)) == ("eve", "bob")
    assert [each[1] for each in await arena.ranks()] == ["eve", "bob", "ada", "dan"]


async def test_a_final_of_a_closed_board_waits_for_its_last_runs(arena: Arena) -> None:
    await four(arena)
    board, store = arena.scene.board, arena.scene.store
    await arena.scene.submit(await arena.person("last"))
    await store.boards.configure(board.id, board.gpus, arena.clock.now())
    arena.clock.advance(5)
    await start(arena)
    (job,) = await arena.scene.claim(5)
    assert not job.leased.is_system_job
    assert await store.jobs.release(job.id, job.fence, "broken", final=True)
    await arena.step()
    assert pair(await arena.compared(ratio=1.2)) == ("bob", "ada")


async def test_a_final_can_be_cancelled_and_leaves_the_standings_as_they_were(
    arena: Arena,
) -> None:
    await four(arena)
    before = await arena.ranks()
    await start(arena)
    await arena.compared(ratio=0.5)
    decision = Decision(arena.scene.ada.id, "")
    assert await cancel_final(arena.scene.store, admin(arena), decision, "vectoradd") == 1
    await arena.step()
    assert await arena.ranks() == before
    assert await arena.scene.claim() == ()
    assert await finals_of(arena.scene.store, admin(arena), "vectoradd") == ()
    with pytest.raises(UserError):
        await cancel_final(arena.scene.store, admin(arena), decision, "vectoradd")


@pytest.mark.parametrize(("top", "code"), [(1, "bad-top"), (51, "bad-top"), (2, "no-contest")])
async def test_a_final_that_compares_nobody_is_refused(arena: Arena, top: int, code: str) -> None:
    await arena.ran("ada", 100)
    with pytest.raises(UserError) as refused:
        await start(arena, top)
    assert refused.value.code == code


async def test_a_deleted_board_takes_its_final_along(arena: Arena) -> None:
    await four(arena)
    await start(arena)
    assert await arena.scene.store.boards.delete(arena.scene.board.id)
    await arena.step()
    assert await arena.scene.store.confirmations.unfinished() == ()
