"""What every store keeps of who is on a leaderboard, and of its records: what all scores give."""

import random

import asyncpg
import pytest

from bot.domain.accounts import DELETED_NAME, Person
from bot.domain.ids import SubmissionId
from bot.domain.scoring import PairRatio, ScoreValue, rank_entrants, records
from bot.domain.submission import Exclusion, ExclusionKind
from bot.services.accounts import delete_account
from bot.store.postgres import PostgresStore
from bot.store.postgres.database import query
from runners.contract.comparison import Ratio
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.factories import make_noisy_case, rank
from tests.doubles.stored import Scene, make_evaluation, set_up


async def judged(
    scene: Scene,
    person: Person,
    time_ns: float | None,
    mode: Mode = Mode.RANKED,
    resolution_ns: float | None = 0.0,
) -> SubmissionId:
    """A submission with this score, or without one when it does not pass."""
    submission = await scene.submit(person, mode=mode)
    job = await scene.claim_one()
    verdict = Verdict.CRASHED if time_ns is None else Verdict.PASSED
    value = None
    if time_ns is not None and mode is Mode.RANKED:
        value = ScoreValue(time_ns, 1.0, resolution_ns, claimed_ns=300.0 - time_ns)
    assert await scene.store.jobs.accept(job.id, job.fence, make_evaluation(verdict), value)
    return submission.id


async def assert_kept(scene: Scene) -> None:
    """What is kept is what all the scores give."""
    results, place = scene.store.results, (scene.board.task_version, "CPU")
    kept, scores = await results.entrants(*place), await results.scores(*place)
    assert rank_entrants(kept) == rank(scores)
    few = await results.score_history(*place, 1)
    assert (records(few.scores), few.total) == (records(scores), len(scores))


async def test_a_score_has_its_ratio_to_the_reference_that_was_timed_in_turn(scene: Scene) -> None:
    place = scene.board.task_version, "CPU"
    for ratio in (None, Ratio(ratio=0.96, half_width=0.01, rounds=5)):
        await scene.submit(scene.ada)
        job, passed = await scene.claim_one(), make_evaluation()
        case = passed.cases[0]
        assert case.measurement is not None
        times = {"time_ns": 100.0, "resolution_ns": 2.0}
        measured = case.measurement.model_copy(update={"vs_reference": ratio, **times})
        cases = (case.model_copy(update={"measurement": measured}),)
        made = passed.model_copy(update={"cases": cases})
        time_ns = 100.0 if ratio is None else 90.0
        assert await scene.store.jobs.accept(job.id, job.fence, made, ScoreValue(time_ns, 1.0))
    results, expected = scene.store.results, PairRatio(0.96, 0.96 * (0.01 / 0.96 + 0.02))
    (entrant,) = await results.entrants(*place)
    assert (entrant.best.value.time_ns, entrant.best.vs_reference) == (90.0, expected)
    for scores in (
        await results.scores_of(scene.ada.id, *place),
        (await results.score_history(*place, 10)).scores,
    ):
        assert [each.vs_reference for each in scores] == [None, expected]
    (best,) = await results.fastest([place])
    assert best.vs_reference == expected


async def test_whatever_happens_the_entrants_are_those_of_all_the_scores(
    scene: Scene, clock: ManualClock
) -> None:
    chance = random.Random(6)  # noqa: S311 - the same each time
    store = scene.store
    people = [scene.ada, *[await store.people.ensure(f"local:{n}", f"P{n}") for n in range(3)]]
    made: list[SubmissionId] = []
    for step in range(60):
        clock.advance(chance.choice([0, 1, 1, -1]))
        deed = chance.random()
        if deed < 0.6 or not made:
            time_ns = chance.choice([None, 90.0, 100.0, 100.0, 200.0, 300.0])
            unseen = chance.choice([None, 0.0, 15.0, 150.0])
            made.append(await judged(scene, chance.choice(people), time_ns, resolution_ns=unseen))
        elif deed < 0.8:
            kind = chance.choice(list(ExclusionKind))
            await store.moderation.exclude(Exclusion(chance.choice(made), kind, "x"))
        else:
            await store.moderation.include(chance.choice(made))
        if step % 6 == 0:
            await assert_kept(scene)
    await assert_kept(scene)


async def test_a_score_comes_back_with_all_that_is_known_of_its_time(scene: Scene) -> None:
    results, place = scene.store.results, (scene.board.task_version, "CPU")
    for value in (ScoreValue(5_870.0, 20.0, 4_120.0, 2_800.0), ScoreValue(9_000.0, 20.0, None)):
        submission = await scene.submit()
        job = await scene.claim_one()
        assert await scene.store.jobs.accept(job.id, job.fence, make_evaluation(), value)
        (outcome,) = await results.outcomes((submission.id,))
        assert outcome.score == value
        assert value in [each.value for each in await results.scores(*place)]
    (best,) = await results.entrants(*place)
    assert best.best.value == value  # the lower upper end
    (fastest,) = await results.fastest([place])
    assert fastest.value == value


async def test_a_submission_excluded_before_its_score_came_counts_once_it_is_included(
    scene: Scene,
) -> None:
    submission = await scene.submit()
    job = await scene.claim_one()
    await scene.store.moderation.exclude(Exclusion(submission.id, ExclusionKind.WITHDRAWN, ""))
    value = ScoreValue(1.0, 0.0)
    assert await scene.store.jobs.accept(job.id, job.fence, make_evaluation(), value)
    await assert_kept(scene)
    assert await scene.store.results.entrants(scene.board.task_version, "CPU") == ()
    await scene.store.moderation.include(submission.id)
    await assert_kept(scene)
    [one] = await scene.store.results.entrants(scene.board.task_version, "CPU")
    assert (one.attempts, one.best.submission) == (1, submission.id)


async def test_whatever_changes_the_standings_is_a_move(scene: Scene) -> None:
    store, place = scene.store, (scene.board.task_version, "CPU")
    seen = [await store.results.revision(*place)]

    async def moved() -> bool:
        seen.append(await store.results.revision(*place))
        return seen[-1] > seen[-2]

    first = await judged(scene, scene.ada, 100.0)
    assert await moved()
    await judged(scene, scene.ada, None)
    assert await moved()
    await store.moderation.exclude(Exclusion(first, ExclusionKind.WITHDRAWN, ""))
    assert await moved()
    await store.moderation.exclude(Exclusion(first, ExclusionKind.DISQUALIFIED, "x"))
    assert await moved()
    await store.moderation.include(first)
    assert await moved()
    await store.people.ensure("local:ada", "Ada L.")
    assert await moved()
    await store.references.mark_untimeable(*place)
    assert await moved()


async def test_a_board_with_entrants_can_be_deleted(scene: Scene) -> None:
    first = await judged(scene, scene.ada, 100.0)
    await judged(scene, scene.ada, None)
    await scene.store.moderation.exclude(Exclusion(first, ExclusionKind.WITHDRAWN, ""))
    assert await scene.store.boards.delete(scene.board.id)
    assert await scene.store.results.entrants(scene.board.task_version, "CPU") == ()


async def judged_noisy(scene: Scene, person: Person, mode: Mode = Mode.RANKED) -> SubmissionId:
    """A submission that passed and has no score, because its time is too noisy."""
    submission, job = await scene.submit(person, mode=mode), await scene.claim_one()
    passed = make_evaluation(mode=mode).model_copy(update={"cases": (make_noisy_case(),)})
    assert await scene.store.jobs.accept(job.id, job.fence, passed, None)
    return submission.id


async def test_who_passed_too_noisily_is_listed_with_the_newest_such_or_failed_run(
    scene: Scene,
) -> None:
    results, place = scene.store.results, (scene.board.task_version, "CPU")

    async def listed() -> list[tuple[SubmissionId, str, str | None, str]]:
        found = await results.refusals(*place)
        return [(each.submission, each.verdict, each.stage, each.message) for each in found]

    before = await results.revision(*place)
    await judged_noisy(scene, scene.ada, Mode.BENCHMARK)
    assert await listed() == []
    noisy = await judged_noisy(scene, scene.ada)
    assert await listed() == [(noisy, "passed", None, "")]
    assert [each.noisy for each in await scene.store.results.outcomes([noisy])] == [True]
    assert await results.revision(*place) > before
    failed = await judged(scene, scene.ada, None)
    assert await listed() == [(failed, "crashed", "test", "")]
    bob = await scene.store.people.ensure("local:bob", "Bob")
    others = await judged_noisy(scene, bob)
    again = await judged_noisy(scene, scene.ada)
    assert await listed() == [(again, "passed", None, ""), (others, "passed", None, "")]
    assert await results.entrants(*place) == ()
    await assert_kept(scene)


async def test_an_older_run_that_ends_later_is_not_the_newest(scene: Scene) -> None:
    place = scene.board.task_version, "CPU"
    older, first = await scene.submit(), await scene.claim_one()
    newer = await judged_noisy(scene, scene.ada)
    assert older.id < newer
    wrong = make_evaluation(Verdict.WRONG_ANSWER)
    assert await scene.store.jobs.accept(first.id, first.fence, wrong, None)
    assert [each.submission for each in await scene.store.results.refusals(*place)] == [newer]


async def test_who_passed_too_noisily_stays_listed_whatever_becomes_of_other_runs(
    scene: Scene, clock: ManualClock
) -> None:
    store, place = scene.store, (scene.board.task_version, "CPU")
    noisy = await judged_noisy(scene, scene.ada)
    best = await judged(scene, scene.ada, 100.0)
    for kind in ExclusionKind:
        await store.moderation.exclude(Exclusion(best, kind, "x"))
        assert await store.results.entrants(*place) == ()
        assert [each.submission for each in await store.results.refusals(*place)] == [noisy]
    await store.moderation.include(best)
    (entrant,) = await store.results.entrants(*place)
    assert entrant.best.submission == best
    await delete_account(store, clock, scene.ada.id)
    (refusal,) = await store.results.refusals(*place)
    assert (refusal.submission, refusal.person_name) == (noisy, DELETED_NAME)
    assert (refusal.verdict, refusal.message) == ("passed", "")
    assert await store.boards.delete(scene.board.id)
    assert await store.results.refusals(*place) == ()


async def test_people_whose_names_look_alike_are_told_apart_if_neither_is_ranked(
    scene: Scene,
) -> None:
    await judged_noisy(scene, scene.ada)
    await judged_noisy(scene, await scene.store.people.ensure("discord:7", "Ada"))
    found = await scene.store.results.refusals(scene.board.task_version, "CPU")
    assert [each.person_name for each in found] == ["Ada (@discord:7)", "Ada (@local:ada)"]


async def test_of_tests_nothing_is_kept(scene: Scene) -> None:
    await judged(scene, scene.ada, None, Mode.TEST)
    assert await scene.store.results.refusals(scene.board.task_version, "CPU") == ()


@pytest.mark.postgres
async def test_a_submission_that_is_removed_leaves_the_others_of_its_person(
    postgres_store: PostgresStore, postgres_dsn: str
) -> None:
    scene = await set_up(postgres_store)
    await judged(scene, scene.ada, 200.0)
    best = await judged(scene, scene.ada, 100.0)
    bob, eve = [await postgres_store.people.ensure(f"local:{who}", who) for who in ("bob", "eve")]
    refused, noisy = await judged(scene, bob, None), await judged_noisy(scene, eve)
    before = await postgres_store.results.revision(scene.board.task_version, "CPU")
    connection = await asyncpg.connect(postgres_dsn)
    for name in ("untold", "scores", "evaluations"):
        await connection.execute(query(f"boards.drop_{name}"), [best, refused, noisy])
    await connection.close()
    [one] = await postgres_store.results.entrants(scene.board.task_version, "CPU")
    assert (one.attempts, one.best.value.time_ns) == (1, 200.0)
    assert await postgres_store.results.refusals(scene.board.task_version, "CPU") == ()
    assert await postgres_store.results.revision(scene.board.task_version, "CPU") > before
