"""What every store must do with bans, limits, exclusions and the pause."""

from datetime import timedelta

import pytest

from bot.domain.errors import UserError
from bot.domain.scoring import ScoreValue
from bot.domain.submission import Ban, Exclusion, ExclusionKind, RateLimit
from bot.services.audit import recorded_once
from runners.contract.task import Mode
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene, make_evaluation

HOUR = timedelta(hours=1)


async def test_a_ban_has_a_reason_until_it_is_lifted(scene: Scene) -> None:
    moderation = scene.store.moderation
    assert await moderation.ban_of(scene.ada.id) is None
    assert not await moderation.unban(scene.ada.id)
    await moderation.ban(scene.ada.id, Ban("forged times"))
    await moderation.ban(scene.ada.id, Ban("forged times, twice"))
    assert await moderation.ban_of(scene.ada.id) == Ban("forged times, twice")
    assert await moderation.bans() == {scene.ada.id: Ban("forged times, twice")}
    assert await moderation.unban(scene.ada.id)
    assert await moderation.ban_of(scene.ada.id) is None


async def test_a_ban_ends_by_itself(scene: Scene, clock: ManualClock) -> None:
    moderation, ada = scene.store.moderation, scene.ada.id
    ban = Ban("a flood", clock.now() + HOUR)
    await moderation.ban(ada, ban)
    assert await moderation.bans() == {ada: ban}
    with pytest.raises(UserError, match=r"banned from submitting until 20.*: a flood"):
        await scene.submit()
    clock.advance(HOUR.total_seconds())
    assert await moderation.ban_of(ada) is None
    assert await moderation.bans() == {}
    await scene.submit()
    assert not await moderation.unban(ada)
    await moderation.ban(ada, Ban("for good"))
    assert await moderation.ban_of(ada) == Ban("for good")


async def test_the_role_of_a_server_is_kept_by_its_id(scene: Scene) -> None:
    moderation = scene.store.moderation
    assert await moderation.parts() == {}
    assert await moderation.claim_part("discord:1", "admin", HOUR)
    assert not await moderation.claim_part("discord:1", "admin", HOUR)
    assert await moderation.parts() == {}
    await moderation.keep_part("discord:1", "admin", "5")
    await moderation.keep_part("discord:2", "admin", "7")
    assert await moderation.parts() == {("discord:1", "admin"): "5", ("discord:2", "admin"): "7"}
    assert not await moderation.claim_part("discord:1", "admin", HOUR)
    await moderation.keep_part("discord:1", "admin", "6")
    assert (await moderation.parts())["discord:1", "admin"] == "6"


async def test_a_role_that_was_never_made_is_claimed_again_after_the_lease(
    scene: Scene, clock: ManualClock
) -> None:
    moderation = scene.store.moderation
    assert await moderation.claim_part("discord:1", "admin", HOUR)
    clock.advance(HOUR.total_seconds())
    assert await moderation.claim_part("discord:1", "admin", HOUR)


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


async def test_a_limit_of_one_person_limits_no_other_person_and_ends(
    scene: Scene, clock: ManualClock
) -> None:
    moderation, board = scene.store.moderation, scene.board.id
    until = clock.now() + HOUR
    wide, own = RateLimit(9, HOUR), RateLimit(1, HOUR, None, None, scene.ada.id, "a flood", until)
    await moderation.set_limit(RateLimit(5, HOUR, None, None, scene.ada.id, "less"))
    for each in (own, wide):
        await moderation.set_limit(each)
    assert await moderation.limits() == (wide, own)
    bob = await scene.store.people.ensure("local:bob", "Bob")
    only = await scene.submit()
    await scene.submit(person=bob)
    at = board, Mode.RANKED, clock.now()
    assert await moderation.limited_by(scene.ada.id, *at) == (own, only.created_at)
    assert await moderation.limited_by(bob.id, *at) is None
    with pytest.raises(UserError, match=r"an admin limited your submissions until .*: a flood;"):
        await scene.submit()
    clock.advance(3600)
    assert await moderation.limits() == (wide,)
    assert not await moderation.drop_limit(None, None, scene.ada.id)
    await moderation.set_limit(RateLimit(1, HOUR, None, None, scene.ada.id, "again"))
    assert await moderation.drop_limit(None, None, scene.ada.id)
    assert await moderation.limits() == (wide,)


async def test_rooms_are_kept_per_house(scene: Scene) -> None:
    moderation = scene.store.moderation
    assert await moderation.channels("discord:1") == ()
    for room in ("20", "10", "10"):
        await moderation.open_channel("discord:1", room)
    await moderation.open_channel("discord:2", "30")
    assert await moderation.channels("discord:1") == ("10", "20")
    assert await moderation.close_channel("discord:1", "10")
    assert not await moderation.close_channel("discord:1", "30")
    assert await moderation.channels("discord:1") == ("20",)


async def test_a_limit_and_a_ban_hold_in_the_moment_in_which_a_submission_is_stored(
    scene: Scene, clock: ManualClock
) -> None:
    await scene.store.moderation.set_limit(RateLimit(1, HOUR, scene.board.id))
    await scene.submit()
    with pytest.raises(UserError, match="at most 1 submission to this leaderboard") as refusal:
        await scene.submit()
    assert refusal.value.moments == {"in 60 min": clock.now() + HOUR}
    clock.advance(3601)
    await scene.store.moderation.ban(scene.ada.id, Ban("forged times"))
    with pytest.raises(UserError, match="banned from submitting: forged times"):
        await scene.submit()
    assert len(await scene.store.submissions.history(scene.ada.id)) == 1


async def test_what_is_judged_again_is_kept_out_by_nothing_and_counts_for_nothing(
    scene: Scene,
) -> None:
    await scene.store.moderation.set_limit(RateLimit(1, HOUR))
    for _ in range(3):
        await scene.submit(judged_again=True)
    await scene.submit()
    await scene.store.moderation.ban(scene.ada.id, Ban("forged times"))
    await scene.submit(judged_again=True)
    assert len(await scene.store.submissions.history(scene.ada.id)) == 5


async def test_a_board_is_paused_by_itself(scene: Scene) -> None:
    moderation, board = scene.store.moderation, scene.board.id
    assert not await moderation.resume_board(board)
    await moderation.pause_board(board, "a new task")
    await moderation.pause_board(board, "a new task, until noon")
    assert await moderation.board_pauses() == {board: "a new task, until noon"}
    assert await moderation.pause_notice() is None
    assert await moderation.resume_board(board)
    assert await moderation.board_pauses() == {}
    await moderation.pause_board(board, "a new task")
    assert await scene.store.boards.delete(board)
    assert await moderation.board_pauses() == {}


async def test_a_paused_pool_keeps_its_jobs_and_its_limit(scene: Scene) -> None:
    moderation = scene.store.moderation
    await scene.store.jobs.limit("CPU", 1)
    for _ in range(2):
        await scene.submit()
    assert not await moderation.resume_gpu("CPU")
    await moderation.pause_gpu("CPU", "a new driver")
    assert await moderation.gpu_pauses() == {"CPU": "a new driver"}
    assert await scene.claim(2) == ()
    assert await moderation.resume_gpu("CPU")
    assert await moderation.gpu_pauses() == {}
    assert len(await scene.claim(2)) == 1
    await moderation.pause_gpu("H100", "it never had a job")
    assert await moderation.gpu_pauses() == {"H100": "it never had a job"}


async def test_the_unfinished_submissions_of_a_person_are_found(scene: Scene) -> None:
    bob = await scene.store.people.ensure("local:bob", "Bob")
    done, running, queued = [await scene.submit() for _ in range(3)]
    await scene.submit(person=bob)
    first = await scene.claim_one()
    await scene.store.jobs.accept(first.id, first.fence, make_evaluation(), None)
    assert first.submission == done.id
    await scene.claim(2)
    assert await scene.store.jobs.unfinished_of(scene.ada.id) == (running.id, queued.id)


async def test_a_request_that_is_handled_again_records_each_decision_once(scene: Scene) -> None:
    async def decide(action: str, subject: str) -> None:
        async with scene.store.transaction() as tx:
            await tx.audit.record(scene.ada.id, action, subject, "why")

    for request in ("discord:17", "discord:17", "discord:18", "discord:18"):
        with recorded_once(request):
            await decide("ban", "bob")
            await decide("ban", "eve")
    await decide("unban", "bob")
    await decide("unban", "bob")
    with recorded_once("discord:17"):
        await decide("ban", "bob")  # which is a change again
    found = [(row.action, row.subject) for row in reversed(await scene.store.audit.rows())]
    bans = [("ban", "bob"), ("ban", "eve")] * 2
    assert found == [*bans, *[("unban", "bob")] * 2, ("ban", "bob")]


async def test_the_record_is_read_in_pages_newest_first(scene: Scene) -> None:
    for number in range(5):
        await scene.store.audit.record(scene.ada.id, "limit", f"{number}", "")

    async def subjects(limit: int, skip: int) -> list[str]:
        return [row.subject for row in await scene.store.audit.rows(limit, skip)]

    assert await subjects(2, 0) == ["4", "3"]
    assert await subjects(2, 4) == ["0"]
    assert await subjects(2, 9) == []


async def test_pages_of_the_record_stay_where_they_are_while_it_grows(scene: Scene) -> None:
    audit = scene.store.audit
    for number in range(3):
        await audit.record(scene.ada.id, "limit", f"{number}", "")
    first = await audit.rows(2)
    await audit.record(scene.ada.id, "limit", "a new one", "")
    rest = await audit.rows(2, before=first[-1].id)
    assert [row.subject for row in (*first, *rest)] == ["2", "1", "0"]
    assert [row.id for row in first] == sorted((row.id for row in first), reverse=True)
