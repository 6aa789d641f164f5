"""What every store must do with bans, limits, exclusions and the pause."""

from datetime import timedelta

from bot.domain.moderation import Exclusion, ExclusionKind, RateLimit
from bot.domain.score import ScoreValue
from runners.contract.task import Mode
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene, make_evaluation

HOUR = timedelta(hours=1)


async def test_a_ban_has_a_reason_until_it_is_lifted(scene: Scene) -> None:
    moderation = scene.store.moderation
    assert await moderation.ban_of(scene.ada.id) is None
    assert not await moderation.unban(scene.ada.id)
    await moderation.ban(scene.ada.id, "forged times")
    await moderation.ban(scene.ada.id, "forged times, twice")
    assert await moderation.ban_of(scene.ada.id) == "forged times, twice"
    assert await moderation.unban(scene.ada.id)
    assert await moderation.ban_of(scene.ada.id) is None


async def test_an_excluded_submission_keeps_its_result_and_loses_its_score(scene: Scene) -> None:
    store = scene.store
    submission = await scene.submit()
    job = await scene.claim_one()
    await store.jobs.accept(job.id, job.fence, make_evaluation(), ScoreValue(1500.0, 3.5))
    version = scene.board.task_version
    assert [each.submission for each in await store.results.scores(version, "CPU")]
    exclusion = Exclusion(submission.id, ExclusionKind.DISQUALIFIED, "it reads the answer")
    await store.moderation.exclude(exclusion)
    assert await store.moderation.exclusion_of(submission.id) == exclusion
    assert await store.results.scores(version, "CPU") == ()
    assert len(await store.results.evaluations(submission.id)) == 1
    assert await store.moderation.include(submission.id)
    assert not await store.moderation.include(submission.id)
    assert len(await store.results.scores(version, "CPU")) == 1


async def test_a_pause_has_a_notice_until_it_ends(scene: Scene) -> None:
    moderation = scene.store.moderation
    assert await moderation.pause_notice() is None
    assert not await moderation.resume()
    await moderation.pause("new driver")
    await moderation.pause("new driver, until noon")
    assert await moderation.pause_notice() == "new driver, until noon"
    assert await moderation.resume()
    assert await moderation.pause_notice() is None


async def test_limits_are_kept_per_board_and_mode(scene: Scene) -> None:
    moderation = scene.store.moderation
    wide = RateLimit(5, HOUR)
    narrow = RateLimit(2, HOUR, scene.board.id, Mode.RANKED)
    await moderation.set_limit(narrow)
    await moderation.set_limit(RateLimit(9, HOUR))
    await moderation.set_limit(wide)
    assert await moderation.limits() == (wide, narrow)
    assert await moderation.drop_limit(None, None)
    assert not await moderation.drop_limit(None, None)
    assert await moderation.limits() == (narrow,)


async def test_a_limit_counts_one_persons_submissions_within_its_time(
    scene: Scene, clock: ManualClock
) -> None:
    store = scene.store
    board = scene.board.id
    limit = RateLimit(2, HOUR, board, Mode.RANKED)
    await store.moderation.set_limit(limit)
    bob = await store.people.ensure("local:bob", "Bob")
    first = await scene.submit()
    clock.advance(600)
    await scene.submit(mode=Mode.TEST)
    await scene.submit(person=bob)
    args = (scene.ada.id, board, Mode.RANKED)
    assert await store.moderation.limited_by(*args, clock.now()) is None
    await scene.submit()
    reached = (limit, first.created_at)
    assert await store.moderation.limited_by(*args, clock.now()) == reached
    assert await store.moderation.limited_by(scene.ada.id, board, Mode.TEST, clock.now()) is None
    clock.advance(2990)
    assert await store.moderation.limited_by(*args, clock.now()) == reached
    clock.advance(20)
    assert await store.moderation.limited_by(*args, clock.now()) is None


async def test_of_several_limits_the_one_that_lifts_last_is_told(
    scene: Scene, clock: ManualClock
) -> None:
    moderation = scene.store.moderation
    day = RateLimit(1, timedelta(days=1))
    await moderation.set_limit(day)
    await moderation.set_limit(RateLimit(1, HOUR, scene.board.id))
    only = await scene.submit()
    found = await moderation.limited_by(scene.ada.id, scene.board.id, Mode.RANKED, clock.now())
    assert found == (day, only.created_at)


async def test_rooms_are_kept_per_house(scene: Scene) -> None:
    moderation = scene.store.moderation
    assert await moderation.rooms("discord:1") == ()
    for room in ("20", "10", "10"):
        await moderation.open_room("discord:1", room)
    await moderation.open_room("discord:2", "30")
    assert await moderation.rooms("discord:1") == ("10", "20")
    assert await moderation.close_room("discord:1", "10")
    assert not await moderation.close_room("discord:1", "30")
    assert await moderation.rooms("discord:1") == ("20",)
