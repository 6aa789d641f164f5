"""What every store must do to tell the best of many leaderboards, and how one came about."""

from bot.domain.accounts import Person
from bot.domain.ids import TaskVersionId
from bot.domain.records import ScoreHistory
from bot.domain.scoring import ScoreValue, by_submission_time, records
from bot.domain.submission import Exclusion, ExclusionKind, Submission
from runners.contract.verdict import Verdict
from tests.doubles.stored import Scene, make_evaluation


async def _ranked(scene: Scene, person: Person, time_ns: float) -> Submission:
    submission = await scene.submit(person)
    job = await scene.claim_one()
    value = ScoreValue(time_ns, 1.0)
    assert await scene.store.jobs.accept(job.id, job.fence, make_evaluation(), value)
    return submission


async def test_the_fastest_of_each_leaderboard_is_given_without_what_is_excluded(
    scene: Scene,
) -> None:
    results, version = scene.store.results, scene.board.task_version
    asked = [(version, "CPU"), (version, "H100"), (TaskVersionId(999), "CPU")]
    assert await results.fastest(asked) == ()
    assert await results.fastest([]) == ()
    bob = await scene.store.people.ensure("local:bob", "Bob")
    slow = await _ranked(scene, scene.ada, 900.0)
    fast = await _ranked(scene, bob, 500.0)
    late = await _ranked(scene, scene.ada, 500.0)
    (best,) = await results.fastest(asked)
    assert best == (await results.scores(version, "CPU"))[0]
    assert (best.submission, best.person_name, best.value) == (fast.id, "Bob", ScoreValue(500, 1))
    for excluded, left in ((fast, late), (late, slow)):
        exclusion = Exclusion(excluded.id, ExclusionKind.WITHDRAWN, "")
        await scene.store.moderation.exclude(exclusion)
        (best,) = await results.fastest(asked)
        assert best.submission == left.id


async def test_each_score_tells_which_machines_timed_it(scene: Scene) -> None:
    results, place = scene.store.results, (scene.board.task_version, "CPU")
    told = {"": await _ranked(scene, scene.ada, 900.0)}
    for worker, call, pool in (
        ("w1", "modal_app/1", "modal"),
        ("box:1a", "local_process/2", "box"),
    ):
        told[pool] = await scene.submit(scene.ada)
        job = await scene.claim_one(worker=worker)
        assert await scene.store.jobs.attach(job.id, job.fence, call)
        value = ScoreValue(800.0 - len(told), 1.0)
        assert await scene.store.jobs.accept(job.id, job.fence, make_evaluation(), value)
    pools = {each.id: pool for pool, each in told.items()}
    everyone = await results.scores(*place)
    assert {each.submission: each.pool for each in everyone} == pools
    assert {each.pool for each in await results.scores_of(scene.ada.id, *place)} == set(told)
    assert {each.pool for each in (await results.score_history(*place, 9)).scores} == set(told)
    (best,), (entrant,) = await results.fastest([place]), await results.entrants(*place)
    assert best.pool == entrant.best.pool == "box"


async def test_the_course_of_a_leaderboard_has_every_record_and_a_part_of_the_rest(
    scene: Scene,
) -> None:
    results, place = scene.store.results, (scene.board.task_version, "CPU")
    assert await results.score_history(*place, 2) == ScoreHistory((), 0)
    bob = await scene.store.people.ensure("local:bob", "Bob")
    for number in range(24):
        time_ns = 900.0 - number if number < 3 else 1000.0 + number
        await _ranked(scene, (scene.ada, bob)[number % 3 == 1], time_ns)
    scores = sorted(await results.scores(*place), key=by_submission_time)
    assert await results.score_history(*place, 24) == ScoreHistory(tuple(scores), 24)
    few = await results.score_history(*place, 5)
    assert (few.total, records(few.scores)) == (24, records(scores))
    assert 3 <= len(few.scores) < 20
    for entrant in await results.entrants(*place):
        assert entrant.best in (await results.score_history(*place, 0)).scores
    assert few.scores == tuple(each for each in scores if each in few.scores)
    own = [each for each in scores if each.person == bob.id]
    assert list(await results.scores_of(bob.id, *place)) == own
    assert await results.scores_of(bob.id, scene.board.task_version, "T4") == ()


async def test_who_was_renamed_stands_everywhere_under_the_new_name(scene: Scene) -> None:
    results, place = scene.store.results, (scene.board.task_version, "CPU")
    await _ranked(scene, scene.ada, 500.0)
    await scene.submit(scene.ada)
    job = await scene.claim_one()
    wrong = make_evaluation(Verdict.WRONG_ANSWER)
    assert await scene.store.jobs.accept(job.id, job.fence, wrong, None)

    async def names() -> set[str]:
        return {
            *(each.best.person_name for each in await results.entrants(*place)),
            *(each.person_name for each in await results.refusals(*place)),
            *(each.person_name for each in await results.scores(*place)),
            *(each.person_name for each in await results.fastest([place])),
        }

    assert await names() == {"Ada"}
    person = await scene.store.people.get(scene.ada.id)
    assert person is not None
    renamed = await scene.store.people.ensure("local:ada", "Countess")
    assert renamed.id == scene.ada.id
    assert await names() == {"Countess"}
