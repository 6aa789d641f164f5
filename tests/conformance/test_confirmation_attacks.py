"""What people try in order to take, keep or block a confirmed place, in every store."""

from dataclasses import replace

import pytest

from bot.domain.accounts import SYSTEM_IDENTITY, SYSTEM_NAME
from bot.domain.board import NewBoard, Viewer
from bot.domain.confirmation import ConfirmationState
from bot.domain.ids import SubmissionId
from bot.domain.submission import Exclusion, ExclusionKind
from bot.services.moderation import Decision, ban, disqualify, requalify, withdraw
from bot.services.standings import leaderboard
from bot.services.status import read_submission
from runners.contract.verdict import Stage, Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.confirming import Arena
from tests.doubles.stored import LEASE, Scene, make_evaluation, make_task


@pytest.fixture
def arena(scene: Scene, clock: ManualClock) -> Arena:
    return Arena(scene, clock)


async def test_a_holder_that_has_become_slow_gives_no_one_a_time_beyond_reach(
    arena: Arena,
) -> None:
    # The kernel of a second account waits from a certain hour on, so the ratio says a tenth.
    await arena.ran("accomplice", 100)
    await arena.ran("eve", 99.9)
    await arena.compared(ratio=0.1)
    assert [each[:2] for each in await arena.ranks()] == [(1, "eve"), (2, "accomplice")]
    run = await arena.ran("bob", 95)
    assert [each.submission for each in await arena.pending()] == [run]
    await arena.compared(ratio=0.95)
    assert [each[1] for each in await arena.ranks()] == ["bob", "eve", "accomplice"]


async def test_several_slow_rivals_in_succession_do_not_shorten_the_first_time(
    arena: Arena,
) -> None:
    await arena.ran("accomplice", 100)
    for name in ("ada", "eve", "ada", "eve"):
        for each in await arena.standings():  # who is first withdraws, for the next to meet others
            if each.score.person_name == name:
                gone = Exclusion(each.score.submission, ExclusionKind.WITHDRAWN, "")
                await arena.scene.store.moderation.exclude(gone)
        await arena.ran(name, 100)
        while await arena.pending():
            await arena.compared(ratio=0.5)
    assert (await arena.ranks())[0] == (1, "eve", 98)  # 2 % less than anybody was measured at
    run = await arena.ran("bob", 95)
    assert [each.submission for each in await arena.pending()] == [run]


async def test_a_raised_time_has_its_interval_raised_in_proportion(arena: Arena) -> None:
    # At a tenth of the time, the interval is a tenth too, so no run would be tied with it.
    await arena.ran("accomplice", 100, 8)
    await arena.ran("eve", 99.9, 8)
    await arena.compared(ratio=0.1)
    run = await arena.ran("bob", 95, 8)
    assert [each.submission for each in await arena.pending()] == [run]
    request = await arena.compared(ratio=0.95)
    assert request.rival == "# eve 99.9\n"
    assert (await arena.ranks())[0][:2] == (1, "bob")


async def test_who_shares_a_place_with_the_one_that_was_met_is_met_too(arena: Arena) -> None:
    await arena.ran("accomplice", 100)
    await arena.ran("ada", 100.2)
    await arena.compared(ratio=1.001, half_width=0.002)
    assert [each[0] for each in await arena.ranks()] == [1, 1]
    run = await arena.ran("eve", 99.9)
    await arena.compared(ratio=0.5)  # the kernel of the accomplice waits
    request = await arena.compared(ratio=1.02)
    assert request.rival == "# ada 100.2\n"
    assert (await arena.confirmation(run)).state is ConfirmationState.SLOWER
    ranks = {name: rank for rank, name, _ in await arena.ranks()}
    assert ranks["ada"] == 1
    assert ranks["eve"] > 1


async def test_a_holder_that_fails_only_in_comparisons_fails_when_compared_with_itself(
    arena: Arena,
) -> None:
    await arena.ran("eve", 100)
    run = await arena.ran("bob", 90)
    await arena.rival_failed()
    for _ in range(2):
        alone = await arena.rival_failed()
        assert (alone.source, alone.rival) == ("# eve 100\n", "# eve 100\n")
    assert (await arena.confirmation(run)).state is ConfirmationState.DROPPED
    assert await arena.ranks() == [(1, "bob", 90)]


async def test_no_one_reads_what_the_failure_of_another_persons_kernel_quotes(
    arena: Arena,
) -> None:
    holder = await arena.ran("eve", 100)
    run = await arena.ran("bob", 90)
    await arena.rival_failed()
    for _ in range(2):
        quoted = "kernel.cu:12: a line of the source"
        await arena.answered(Verdict.BUILD_FAILED, stage=Stage.TEST, message=quoted)
    gone = await arena.scene.store.moderation.exclusion_of(holder)
    assert gone is not None
    reasons = gone.reason, (await arena.confirmation(run)).reason
    assert all("build failed" in each for each in reasons)
    assert not any("a line of the source" in each for each in reasons)


async def test_others_do_not_read_why_a_run_failed_while_its_source_is_hidden(
    arena: Arena,
) -> None:
    await arena.ran("eve", 100)
    run = await arena.ran("bob", 90)
    quoted = "kernel.cu:12: a line of the source"
    await arena.answered(Verdict.BUILD_FAILED, stage=Stage.TEST, message=quoted)
    read = {}
    for name in ("bob", "eve"):
        viewer = Viewer((await arena.person(name)).id)
        status = await read_submission(arena.scene.store, arena.clock, viewer, run)
        (job,) = status.jobs
        assert job.confirmation is not None
        read[name] = job.confirmation.reason
    assert quoted in read["bob"]
    assert read["eve"] == "it failed in its comparison"


async def test_many_runs_of_one_person_do_not_keep_others_from_their_comparison(
    arena: Arena,
) -> None:
    await arena.ran("ada", 100)
    for number in range(5):
        await arena.ran("eve", 99 - number)
    bob = await arena.ran("bob", 50)
    await arena.compared(ratio=1.02)  # eve's first, which ran already
    request = await arena.compared(ratio=0.5)
    assert request.source == "# bob 50\n"
    assert (await arena.confirmation(bob)).state is ConfirmationState.CONFIRMED
    # Nothing that eve has takes the first place now.
    request = await arena.compared(ratio=1.02)
    assert request.source == "# eve 95\n"


async def test_a_holder_who_withdraws_run_after_run_does_not_delay_for_ever(arena: Arena) -> None:
    own = [await arena.ran("eve", 100 - number) for number in range(8)]
    await arena.ran("ada", 300)
    bob = await arena.ran("bob", 50)
    made = 0
    for number in range(8):
        if not (await arena.confirmation(bob)).is_pending:
            break
        await arena.scene.store.moderation.exclude(
            Exclusion(own[7 - number], ExclusionKind.WITHDRAWN, "")
        )
        await arena.compared(ratio=0.17)
        made += 1
    assert made == 4  # three with eve, and one with ada
    assert (1, "bob") in [each[:2] for each in await arena.ranks()]


async def test_a_better_run_of_ones_own_does_not_lose_what_was_compared(arena: Arena) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 99.9)
    await arena.compared(ratio=0.998)
    assert [each[:2] for each in await arena.ranks()] == [(1, "bob"), (2, "ada")]
    await arena.ran("bob", 99.7)
    assert [each[:2] for each in await arena.ranks()] == [(1, "bob"), (2, "ada")]
    await arena.compared(ratio=0.997)
    assert await arena.ranks() == [(1, "bob", 99.7), (2, "ada", 100)]


async def test_withdrawing_a_run_moves_up_no_run_that_was_slower_than_another(arena: Arena) -> None:
    accomplice = await arena.ran("accomplice", 100)
    await arena.ran("eve", 100.2)
    await arena.compared(ratio=1.002)
    await arena.ran("bob", 99.9)
    await arena.compared(ratio=0.998)
    assert [each[:2] for each in await arena.ranks()] == [(1, "bob"), (2, "accomplice"), (3, "eve")]
    viewer = Viewer((await arena.person("accomplice")).id)
    await withdraw(arena.scene.store, viewer, "", accomplice)
    await arena.step()
    assert [each[:2] for each in await arena.ranks()] == [(1, "bob"), (2, "eve")]
    # But comparisons with a disqualified run do not count.
    await disqualify(arena.scene.store, Decision(viewer.person, "it waits"), accomplice)
    assert [each[:2] for each in await arena.ranks()] == [(1, "bob"), (1, "eve")]


async def test_withdrawing_a_run_that_met_the_first_place_moves_up_no_slower_run(
    arena: Arena,
) -> None:
    await arena.ran("bob", 100)
    accomplice = await arena.ran("accomplice", 100.3)
    await arena.compared(ratio=1.003)
    await arena.ran("eve", 100.7)
    await arena.compared(ratio=1.0)
    ranks = [(1, "bob"), (2, "accomplice"), (2, "eve")]
    assert [each[:2] for each in await arena.ranks()] == ranks
    assert not await arena.pending()
    viewer = Viewer((await arena.person("accomplice")).id)
    await withdraw(arena.scene.store, viewer, "", accomplice)
    await arena.step()
    assert [each[:2] for each in await arena.ranks()] == [(1, "bob"), (2, "eve")]


@pytest.mark.parametrize("how", ["disqualified", "withdrawn", "fails"])
async def test_a_second_best_run_is_confirmed_when_the_best_is_taken_off_the_board(
    arena: Arena, how: str
) -> None:
    await arena.ran("ada", 100)
    best = await arena.ran("eve", 90)
    await arena.compared(ratio=0.9)
    second = await arena.ran("eve", 95)  # not her best, so it is not compared
    third = await arena.ran("eve", 96)
    if how == "fails":  # in a comparison with somebody else
        await arena.ran("bob", 80)
        for _ in range(3):
            await arena.rival_failed()
        await arena.compared(ratio=0.8)  # bob is compared with ada now
        assert [each[:2] for each in await arena.ranks()] == [(1, "bob"), (2, "ada")]
    else:
        await take_off(arena, best, how)
        assert await arena.ranks() == [(1, "ada", 100)]
    assert [each.submission for each in await arena.pending()] == [second, third]
    if how != "fails":
        await arena.step()
        assert (await arena.compared(ratio=0.95)).source == "# eve 95\n"
        assert await arena.ranks() == [(1, "eve", 95), (2, "ada", 100)]
        assert (await arena.confirmation(third)).state is ConfirmationState.DROPPED


async def take_off(arena: Arena, run: SubmissionId, how: str = "disqualified") -> None:
    """Take a run off its board, as an admin or as its person."""
    store, admin = arena.scene.store, arena.scene.ada.id
    if how == "disqualified":
        await disqualify(store, Decision(admin, ""), run)
    else:
        await withdraw(store, Viewer((await arena.person("eve")).id), "", run)


async def test_a_next_best_run_needs_no_comparison_if_its_person_was_ranked_before_the_others(
    arena: Arena,
) -> None:
    await arena.ran("eve", 96)
    await arena.ran("ada", 100)
    best = await arena.ran("eve", 90)
    await arena.ran("eve", 95)
    await arena.ran("bob", 80)
    await arena.compared(ratio=0.9)
    await take_off(arena, best)
    assert await arena.pending() == ()  # ada came after 96, and nobody else would be displaced
    assert await arena.ranks() == [(1, "bob", 81), (2, "eve", 95), (3, "ada", 100)]


async def test_a_requalified_run_takes_no_place_without_a_comparison(arena: Arena) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 90)
    await arena.compared(ratio=0.9)
    best = await arena.ran("eve", 80)
    await arena.compared(ratio=0.9)
    second = await arena.ran("eve", 85)
    await take_off(arena, second)
    await take_off(arena, best)
    await requalify(arena.scene.store, Decision(arena.scene.ada.id, ""), second)
    assert [each[:2] for each in await arena.ranks()] == [(1, "bob"), (2, "ada")]
    assert [each.submission for each in await arena.pending()] == [second]
    await requalify(arena.scene.store, Decision(arena.scene.ada.id, ""), best)
    assert await arena.ranks() == [(1, "eve", 81), (2, "bob", 90), (3, "ada", 100)]


async def test_nothing_is_held_back_where_nothing_was_ever_confirmed(arena: Arena) -> None:
    # Without a server, or with confirmations switched off, nobody would make the comparison.
    best = await arena.ran("eve", 90)
    await arena.ran("ada", 100)
    await arena.ran("eve", 95)
    await take_off(arena, best)
    assert await arena.ranks() == [(1, "eve", 95), (2, "ada", 100)]


async def test_a_ban_ends_the_comparisons_of_the_person(arena: Arena) -> None:
    await arena.ran("ada", 100)
    running = await arena.ran("eve", 90)
    waiting = await arena.ran("eve", 80)
    bob = await arena.ran("bob", 70)
    await ban(arena.scene.store, Decision(arena.scene.ada.id, "spam"), "local:eve")
    version = arena.scene.board.task_version
    shown = await leaderboard(arena.scene.store, version, "CPU", newest=True)
    assert [each.submission for each in shown.pending] == [bob]
    await arena.step()
    assert [each.submission for each in await arena.pending()] == [bob]
    for run in (running, waiting):
        ended = await arena.confirmation(run)
        assert (ended.state, "banned" in ended.reason) == (ConfirmationState.DROPPED, True)
        assert "spam" not in ended.reason  # others read it too
    # The run of the first was queued: the worker never gets it, and nobody waits for it.
    assert (await arena.compared(ratio=0.7)).source == "# bob 70\n"
    assert await arena.ranks() == [(1, "bob", 70), (2, "ada", 100)]


async def test_a_ban_stops_a_comparison_that_a_worker_makes(arena: Arena) -> None:
    await arena.ran("ada", 100)
    await arena.ran("eve", 90)
    (held,) = await arena.scene.claim()
    await ban(arena.scene.store, Decision(arena.scene.ada.id, "spam"), "local:eve")
    await arena.step()
    (told,) = await arena.scene.store.jobs.heartbeat("w1", ((held.id, held.fence),), LEASE)
    assert told.cancel_requested
    # Its answer still arrives, but decides nothing.
    late = make_evaluation()
    assert await arena.scene.store.jobs.accept(held.id, held.fence, late, None)
    await arena.step()
    assert await arena.ranks() == [(1, "ada", 100)]
    assert await arena.scene.store.confirmations.unfinished() == ()


@pytest.mark.parametrize("how", ["lost", "task-error"])
async def test_a_run_that_keeps_its_comparisons_from_being_made_gains_nothing(
    arena: Arena, how: str
) -> None:
    async def prevented() -> None:
        await (arena.lost() if how == "lost" else arena.answered(Verdict.TASK_ERROR))

    await arena.ran("ada", 100)
    run = await arena.ran("eve", 90)
    for _ in range(3 + 2):  # with ada's, and then twice with itself
        await prevented()
    request = await arena.compared()
    assert (request.source, request.rival) == ("# ada 100\n", "# ada 100\n")
    assert await arena.ranks() == [(1, "ada", 100)]
    assert await arena.pending() == ()
    gone = await arena.scene.store.moderation.exclusion_of(run)
    assert gone is not None
    assert "nor with itself" in gone.reason
    (decision, *_) = await arena.scene.store.audit.rows(1)
    assert (decision.action, decision.subject) == ("disqualified", f"submission {run}")
    # If an admin ranks it again, it is compared again.
    await requalify(arena.scene.store, Decision(arena.scene.ada.id, ""), run)
    assert await arena.ranks() == [(1, "ada", 100)]
    assert [each.submission for each in await arena.pending()] == [run]


async def test_a_holder_that_keeps_comparisons_from_being_made_does_not_stay(arena: Arena) -> None:
    await arena.ran("eve", 100)
    run = await arena.ran("bob", 90)
    for _ in range(3):
        await arena.lost()
    request = await arena.compared()  # bob's with itself
    assert (request.source, request.rival) == ("# bob 90\n", "# bob 90\n")
    for _ in range(2):
        await arena.lost()
    assert (await arena.confirmation(run)).state is ConfirmationState.DROPPED
    assert await arena.ranks() == [(1, "bob", 90)]


async def test_a_run_that_once_could_not_be_compared_by_chance_loses_nothing(arena: Arena) -> None:
    await arena.ran("ada", 100)
    run = await arena.ran("eve", 90)
    for _ in range(3 + 1):
        await arena.lost()
    await arena.compared()  # eve's with itself, at the second try
    await arena.compared()  # ada's
    assert (await arena.confirmation(run)).state is ConfirmationState.UNDECIDED
    assert await arena.ranks() == [(1, "ada", 100), (1, "eve", 100)]


async def test_a_lucky_time_does_not_protect_its_holder_in_a_comparison(arena: Arena) -> None:
    await arena.ran("eve", 100, 1)
    for number in range(3):  # the same kernel again and again, until one is fast by chance
        await arena.ran("eve", 99 - number, 1)
    await arena.ran("bob", 98, 1)
    await arena.compared(ratio=0.99)  # both are timed anew, and only that decides
    assert [each[:2] for each in await arena.ranks()] == [(1, "bob"), (2, "eve")]


async def test_comparisons_of_many_boards_of_one_person_do_not_delay_those_of_others(
    arena: Arena,
) -> None:
    store = arena.scene.store
    homes = [arena]
    for number in range(4):
        new = NewBoard(f"board-{number}", ("CPU",), None, arena.scene.ada.id)
        board = await store.boards.publish(new, make_task(f"board-{number}"), f"digest-{number}")
        homes.append(Arena(replace(arena.scene, board=board), arena.clock))
    for home in homes:
        await home.ran("ada", 100)
    for home in homes[1:]:
        await home.ran("eve", 90)
    bob = await arena.ran("bob", 90)
    system = await store.people.ensure(SYSTEM_IDENTITY, SYSTEM_NAME)
    turns = {}
    for home in (*homes[1:], arena):
        (waiting,) = await home.pending()
        assert waiting.rival is not None
        await store.confirmations.order(waiting.id, waiting.rival, system.id)
        (waiting,) = await home.pending()
        assert waiting.run is not None
        (job,) = await store.jobs.of(waiting.run)
        turns[waiting.submission] = job.turn
    of_eve = [turn for run, turn in turns.items() if run != bob]
    assert sorted(set(of_eve)) == of_eve  # one after the other
    assert turns[bob] < of_eve[-1]
