"""Runs for the first places are confirmed, in every store; see `bot.services.confirmations`."""

import asyncio

import pytest

from bot.domain.board import Viewer
from bot.domain.confirmation import ConfirmationState
from bot.domain.costs import UsageKind
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState
from bot.domain.scoring import PairRatio, records
from bot.domain.submission import Exclusion, ExclusionKind
from bot.ports import Store
from bot.reports.confirmations import compared_lines
from bot.reports.history import history_line
from bot.services.confirmations import UNDECIDED, advance
from bot.services.history import history_of
from bot.services.lookup import visible_submission
from bot.services.standings import leaderboard
from bot.services.status import submission_status
from runners.contract.verdict import Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.confirming import Arena
from tests.doubles.stored import LEASE, Scene, make_evaluation


@pytest.fixture
def arena(scene: Scene, clock: ManualClock) -> Arena:
    return Arena(scene, clock)


async def test_nobody_is_displaced_by_the_first_run_or_by_a_free_place(arena: Arena) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 200)
    await arena.ran("bob", 150)
    await arena.ran("ada", 90)
    assert await arena.pending() == ()
    assert await arena.ranks() == [(1, "ada", 90), (2, "bob", 150)]


async def test_a_run_that_takes_a_place_counts_once_it_is_confirmed(arena: Arena) -> None:
    first = await arena.ran("ada", 100)
    run = await arena.ran("bob", 90)
    (waiting,) = await arena.pending()
    assert (waiting.submission, waiting.place, waiting.rival) == (run, 1, first)
    assert waiting.rival_name == "ada"
    assert await arena.ranks() == [(1, "ada", 100)]
    assert {each.submission for each in await arena.scene.store.outbox.unannounced()} == {first}

    request = await arena.compared(ratio=0.95)
    assert (request.source, request.rival) == ("# bob 90\n", "# ada 100\n")
    assert await arena.ranks() == [(1, "bob", 95), (2, "ada", 100)]
    in_turn = [each.score.vs_reference for each in await arena.standings()]
    assert in_turn == [PairRatio(0.45, 0.0), PairRatio(0.5, 0.0)]
    confirmation = await arena.confirmation(run)
    assert confirmation.state is ConfirmationState.CONFIRMED
    assert confirmation.ratio is not None
    assert confirmation.ratio.ratio == pytest.approx(0.95)
    unannounced = await arena.scene.store.outbox.unannounced()
    assert {each.submission for each in unannounced} == {first, run}
    assert await arena.scene.store.confirmations.unfinished() == ()


async def test_an_interval_that_contains_1_is_a_tie_and_a_narrow_one_is_not(arena: Arena) -> None:
    await arena.ran("ada", 1000)
    await arena.ran("bob", 900)
    await arena.compared(ratio=0.999, half_width=0.002)
    assert [each[:2] for each in await arena.ranks()] == [(1, "bob"), (1, "ada")]

    await arena.ran("eve", 2000)
    await arena.ran("eve", 1100)
    assert await arena.pending() == ()
    run = await arena.ran("eve", 800)
    await arena.compared(ratio=0.998, half_width=0.001)  # less than 0.5 %, but it was seen
    await arena.compared(ratio=0.997, half_width=0.001)  # who shares the place is met too
    assert (await arena.confirmation(run)).state is ConfirmationState.CONFIRMED
    assert [each[:2] for each in await arena.ranks()] == [(1, "eve"), (2, "bob"), (2, "ada")]


async def test_a_failure_before_the_run_that_waits_is_not_the_persons_last_word(
    arena: Arena,
) -> None:
    async def refused() -> list[SubmissionId]:
        version = arena.scene.board.task_version
        shown = await leaderboard(arena.scene.store, version, "CPU", newest=True)
        return [each.submission for each in shown.refused]

    await arena.ran("ada", 100)
    first = await arena.crashed("bob")
    assert await refused() == [first]
    await arena.ran("bob", 90)
    assert len(await arena.pending()) == 1
    assert await refused() == []
    later = await arena.crashed("bob")
    assert await refused() == [later]


async def test_who_was_slower_does_not_take_the_place(arena: Arena) -> None:
    await arena.ran("ada", 100)
    run = await arena.ran("bob", 99)
    await arena.compared(ratio=1.02)
    assert (await arena.confirmation(run)).state is ConfirmationState.SLOWER
    assert await arena.ranks() == [(1, "ada", 100), (2, "bob", 102)]


async def test_a_run_that_fails_is_not_ranked_and_the_earlier_best_stands(arena: Arena) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 300)
    await arena.ran("bob", 90)
    eve = await arena.ran("eve", 80)
    await arena.answered(Verdict.WRONG_ANSWER)
    assert await arena.ranks() == [(1, "ada", 100), (2, "bob", 300)]
    await arena.answered(Verdict.CRASHED)
    assert await arena.ranks() == [(1, "ada", 100), (2, "bob", 300)]
    assert await arena.pending() == ()
    version, results = arena.scene.board.task_version, arena.scene.store.results
    refused = [each for each in await results.refusals(version, "CPU") if each.submission == eve]
    assert [(each.verdict, each.in_confirmation) for each in refused] == [("crashed", True)]
    assert "failed when it was compared with #" in refused[0].message


async def test_a_holder_that_fails_is_compared_with_itself_and_stays(
    arena: Arena,
) -> None:
    await arena.ran("ada", 100)
    run = await arena.ran("bob", 90)
    await arena.rival_failed()
    alone = await arena.compared()
    assert (alone.source, alone.rival) == ("# ada 100\n", "# ada 100\n")
    await arena.compared(ratio=0.9)
    assert (await arena.confirmation(run)).state is ConfirmationState.CONFIRMED
    assert await arena.ranks() == [(1, "bob", 90), (2, "ada", 100)]


async def test_a_holder_that_fails_for_good_loses_its_place_and_an_admin_is_told(
    arena: Arena,
) -> None:
    await arena.ran("eve", 300)
    holder = await arena.ran("ada", 100)
    await arena.compared(ratio=0.33)
    run = await arena.ran("bob", 90)
    await arena.rival_failed()
    await arena.answered(Verdict.CRASHED)
    await arena.answered(Verdict.CRASHED)
    (decision, *_) = await arena.scene.store.audit.rows(1)
    assert (decision.action, decision.subject) == ("disqualified", f"submission {holder}")
    # The next holder is met in place of the one that is gone.
    await arena.compared(ratio=0.3)
    assert (await arena.confirmation(run)).state is ConfirmationState.CONFIRMED
    assert await arena.ranks() == [(1, "bob", 90), (2, "eve", 300)]


@pytest.mark.parametrize("how", ["too-old", "lost", "rival"])
async def test_what_cannot_be_compared_displaces_nobody_and_an_admin_is_told(
    arena: Arena, how: str
) -> None:
    await arena.ran("ada", 100)
    run = await arena.ran("bob", 90)
    for _ in range(3):
        if how == "too-old":
            await arena.answered()
        elif how == "lost":
            await arena.lost()
        else:
            await arena.rival_failed()
            await arena.answered()
    for _ in range(4):  # each of the two is compared with itself, which cannot be made either
        await (arena.lost() if how == "lost" else arena.answered())
    assert (await arena.confirmation(run)).state is ConfirmationState.UNDECIDED
    assert await arena.ranks() == [(1, "ada", 100), (1, "bob", 100)]
    (decision, *_) = await arena.scene.store.audit.rows(1)
    assert (decision.action, decision.actor) == (UNDECIDED, None)
    assert await arena.scene.store.confirmations.unfinished() == ()


async def test_runs_meet_the_holder_of_their_moment_one_after_the_other(arena: Arena) -> None:
    await arena.ran("ada", 100)
    bob = await arena.ran("bob", 90)
    # Judged while the first comparison runs: both wait for the same place.
    eve = await arena.ran("eve", 80)
    assert [each.run is None for each in await arena.pending()] == [False, True]
    await arena.compared(ratio=0.9)
    request = await arena.compared(ratio=0.95)
    assert (request.source, request.rival) == ("# eve 80\n", "# bob 90\n")
    assert await arena.ranks() == [(1, "eve", 85.5), (2, "bob", 90), (3, "ada", 100)]
    states = [(await arena.confirmation(each)).state for each in (bob, eve)]
    assert set(states) == {ConfirmationState.CONFIRMED}


async def test_a_run_that_passes_several_holders_meets_each_of_them(arena: Arena) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 110)
    run = await arena.ran("eve", 105)
    # It beats the second by more than its first run said, so it would take the first place too.
    await arena.compared(ratio=0.85)
    first, second = await arena.scene.store.confirmations.of(run)
    assert (first.state, second.place) == (ConfirmationState.CONFIRMED, 1)
    await arena.compared(ratio=1.01)
    # It is behind the first, whom it met, whatever the comparison with the second said.
    assert await arena.ranks() == [(1, "ada", 100), (2, "eve", 101), (3, "bob", 110)]


async def test_a_holder_who_is_excluded_meanwhile_is_replaced_by_the_next(arena: Arena) -> None:
    await arena.ran("eve", 300)
    holder = await arena.ran("ada", 100)
    await arena.compared(ratio=0.33)
    await arena.ran("bob", 90)
    gone = Exclusion(holder, ExclusionKind.WITHDRAWN, "")
    await arena.scene.store.moderation.exclude(gone)
    await arena.compared(ratio=0.9)
    request = await arena.compared(ratio=0.3)
    assert request.rival == "# eve 300\n"
    assert await arena.ranks() == [(1, "bob", 90), (2, "eve", 300)]


async def test_a_run_that_is_excluded_while_it_waits_waits_until_it_counts_again(
    arena: Arena,
) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 90)
    eve = await arena.ran("eve", 80)
    moderation = arena.scene.store.moderation
    await moderation.exclude(Exclusion(eve, ExclusionKind.DISQUALIFIED, "why"))
    await arena.compared(ratio=0.9)
    assert await arena.scene.claim() == ()
    assert (await submission_status(arena.scene.store, eve)).jobs[0].confirmation is None
    assert await moderation.include(eve)
    (job,) = (await submission_status(arena.scene.store, eve)).jobs
    assert job.confirmation is not None
    assert job.confirmation.is_pending
    await arena.step()
    await arena.compared(ratio=0.9)
    assert await arena.ranks() == [(1, "eve", 81), (2, "bob", 90), (3, "ada", 100)]


async def test_a_run_that_takes_no_place_any_more_needs_no_comparison(arena: Arena) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 90)
    eve = await arena.ran("eve", 98)
    await arena.compared(ratio=0.9)
    assert (await arena.confirmation(eve)).is_pending  # now for the second place, with ada
    holder = (await arena.standings())[1].score.submission
    await arena.scene.store.moderation.exclude(Exclusion(holder, ExclusionKind.WITHDRAWN, ""))
    await arena.compared(ratio=0.9)
    assert (await arena.confirmation(eve)).state is ConfirmationState.DROPPED
    assert await arena.ranks() == [(1, "bob", 90), (2, "eve", 98)]


async def test_two_processes_and_repeated_steps_do_nothing_twice(arena: Arena) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 90)
    for _ in range(3):
        await arena.step()
    assert len(await arena.scene.claim(5)) == 1


async def test_the_queue_counts_confirmations_apart(arena: Arena) -> None:
    store: Store = arena.scene.store
    await arena.ran("ada", 100)
    bob = await arena.ran("bob", 90)
    (waiting,) = await arena.pending()
    assert waiting.run is not None
    (job,) = await store.jobs.of(waiting.run)
    assert (job.state, job.priority) == (JobState.QUEUED, 10)
    person = await arena.person("bob")
    assert job.person != person.id
    assert await store.jobs.unfinished_of(person.id) == ()
    await arena.compared(ratio=0.9)
    tallied = {each.mode: each.evaluations for each in await store.operations.tallies()}
    assert tallied == {"ranked": 2, "confirmation": 1}
    usage = await store.costs.usage(arena.clock.now().replace(hour=0))
    assert (UsageKind.CONFIRMATION, 1) in {(each.kind, each.evaluations) for each in usage}
    assert [each.id for each in await store.submissions.to(arena.scene.board.id)][-1] == bob


async def test_a_deleted_board_takes_its_confirmations_along(arena: Arena) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 90)
    assert await arena.scene.store.boards.delete(arena.scene.board.id)
    await arena.step()
    assert await arena.scene.store.confirmations.unfinished() == ()
    assert await arena.scene.claim() == ()


async def test_a_run_whose_worker_vanished_is_compared_by_the_next(arena: Arena) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 90)
    (held,) = await arena.scene.claim()
    arena.clock.advance(LEASE.total_seconds() + 1)
    assert await arena.scene.store.jobs.requeue_expired() == 1
    arena.clock.advance(60)
    await arena.compared(ratio=0.9)
    # The first worker is still there, and answers too late.
    late = make_evaluation()
    assert not await arena.scene.store.jobs.accept(held.id, held.fence, late, None)
    await arena.step()
    assert await arena.ranks() == [(1, "bob", 90), (2, "ada", 100)]


async def test_only_admins_see_a_run_that_has_another_persons_source(arena: Arena) -> None:
    await arena.ran("bob", 100)
    await arena.ran("eve", 90)
    (waiting,) = await arena.pending()
    assert waiting.run is not None
    await arena.compared(ratio=0.9)
    store, creator = arena.scene.store, arena.scene.ada.id
    seen = await visible_submission(store, Viewer(creator, sees_all=True), waiting.run)
    assert seen.id == waiting.run
    for person in (creator, waiting.person):
        with pytest.raises(UserError):
            await visible_submission(store, Viewer(person), waiting.run)


async def told(arena: Arena, name: str) -> str:
    """The newest line of a person's history."""
    past = await history_of(arena.scene.store, (await arena.person(name)).id)
    return history_line(past[0]).partition("CPU: ")[2]


async def test_the_history_says_how_each_run_was_confirmed_and_who_took_its_place(
    arena: Arena,
) -> None:
    await arena.ran("ada", 100)
    assert await told(arena, "ada") == "100.0 ns ± 0.0"
    bob = await arena.ran("bob", 90)
    assert await told(arena, "bob") == "passed, confirmation pending"
    await arena.compared(ratio=0.9)
    assert await told(arena, "bob") == "90.00 ns ± 0.00, confirmed"
    assert await told(arena, "ada") == f"100.0 ns ± 0.0, lost its place to #{bob}"
    await arena.ran("eve", 89)
    await arena.answered(Verdict.CRASHED)
    assert await told(arena, "eve") == "passed, not ranked: failed in its comparison"
    await arena.ran("eve", 88)
    await arena.compared(ratio=1.2)
    assert (await told(arena, "eve")).endswith("not confirmed: slower in its comparison")
    await arena.scene.store.moderation.exclude(Exclusion(bob, ExclusionKind.DISQUALIFIED, ""))
    assert await told(arena, "ada") == "100.0 ns ± 0.0"  # it has its place again


async def test_a_submission_says_which_run_took_its_place_or_shares_it(arena: Arena) -> None:
    first = await arena.ran("ada", 100)
    bob = await arena.ran("bob", 90)
    await arena.compared(ratio=0.9, half_width=0.002)
    eve = await arena.ran("eve", 90)
    await arena.compared(ratio=1.001, half_width=0.002)
    lines = {}
    for run in (first, bob, eve):
        (job,) = (await submission_status(arena.scene.store, run)).jobs
        lines[run] = [each.text for each in compared_lines(job)]
    by_bob = f"CPU: lost 1st place to #{bob} by bob, 11.11 % ± 0.25 faster in a comparison"
    assert [each[: len(by_bob)] for each in lines[first]] == [by_bob]
    # Its own run said 90.
    assert lines[eve][1].startswith("CPU: 90.09 ns ± 0.00 is the time that ranks: it follows from")
    assert lines[bob][1].startswith(f"CPU: shares 1st place with #{eve} by eve")
    assert [len(each) for each in lines.values()] == [1, 2, 2]


async def best_so_far(arena: Arena) -> list[str]:
    """The names of the people who held the best time of the season, in order."""
    place = arena.scene.board.task_version, arena.gpu
    history = await arena.scene.store.results.score_history(*place, 0)
    return [each.person_name for each in records(history.scores)]


async def test_the_best_time_of_the_season_is_decided_by_the_ratio_of_compared_runs(
    arena: Arena,
) -> None:
    await arena.ran("ada", 100, 3)
    await arena.ran("bob", 99.5, 3)
    assert await best_so_far(arena) == ["ada"]
    await arena.compared(ratio=0.99)
    assert await arena.ranks() == [(1, "bob", 99), (2, "ada", 100)]
    assert await best_so_far(arena) == ["ada", "bob"]
    await arena.ran("eve", 90)  # not so fast when it is compared
    assert await best_so_far(arena) == ["ada", "bob"]
    await arena.compared(ratio=1.0)
    assert [each[0] for each in await arena.ranks()] == [1, 1, 3]
    assert await best_so_far(arena) == ["ada", "bob"]


async def test_two_steps_at_once_order_one_comparison(arena: Arena) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 90)
    eve = await arena.ran("eve", 80)
    (job,) = await arena.scene.claim()
    assert await arena.scene.store.jobs.release(job.id, job.fence, "broken", final=True)
    await asyncio.gather(*(advance(arena.scene.store, arena.clock) for _ in range(4)))
    assert len(await arena.scene.claim(9)) == 1
    assert (await arena.confirmation(eve)).run is None
