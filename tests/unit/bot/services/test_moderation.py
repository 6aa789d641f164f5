from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.board import Viewer
from bot.domain.costs import Quota, QuotaKey, Unit
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.job import Claim, JobState
from bot.domain.publication import NewPublication
from bot.domain.submission import Ban, ExclusionKind, RateLimit
from bot.services import moderation
from bot.services.accounts import delete_account
from bot.services.moderation import Decision
from bot.services.rules import submission_rules
from tests.doubles.place import Place


async def audit(place: Place) -> list[tuple[str, str, str]]:
    return [(row.action, row.subject, row.reason) for row in await place.store.audit.rows(1)]


async def test_a_ban_and_its_end_leave_audit_rows(place: Place) -> None:
    eve = await place.person("eve")
    await moderation.ban(place.store, Decision(place.ada, "forged"), "local:eve")
    assert await place.store.moderation.ban_of(eve) == Ban("forged")
    assert await audit(place) == [("ban", "person local:eve", "forged")]
    await moderation.unban(place.store, Decision(place.ada, "sorry"), "local:eve")
    assert await place.store.moderation.ban_of(eve) is None
    assert await audit(place) == [("unban", "person local:eve", "sorry")]
    with pytest.raises(UserError, match="not banned"):
        await moderation.unban(place.store, Decision(place.ada, ""), "local:eve")
    with pytest.raises(UserError, match="has no account here yet"):
        await moderation.ban(place.store, Decision(place.ada, ""), "local:nobody")


async def test_an_admin_cannot_ban_their_own_account(place: Place) -> None:
    with pytest.raises(UserError, match="your own account"):
        await moderation.ban(place.store, Decision(place.ada, "a slip"), "local:ada")
    assert await place.store.moderation.bans() == {}


async def test_the_end_of_a_ban_is_in_the_audit(place: Place) -> None:
    await place.person("eve")
    end = datetime(2030, 1, 1, tzinfo=UTC)
    await moderation.ban(place.store, Decision(place.ada, "floods"), "local:eve", end)
    assert await audit(place) == [
        ("ban", "person local:eve", "floods (until 2030-01-01 00:00 UTC)")
    ]


async def test_a_person_withdraws_only_their_own_and_only_once(place: Place) -> None:
    submission = await place.submit()
    bob = await place.person("bob")
    with pytest.raises(UserError, match="another person"):
        await moderation.withdraw(place.store, Viewer(bob), "", submission.id)
    await moderation.withdraw(place.store, Viewer(place.ada), "wrong file", submission.id)
    found = await place.store.moderation.exclusion_of(submission.id)
    assert found is not None
    assert (found.kind, found.reason) == (ExclusionKind.WITHDRAWN, "wrong file")
    assert await audit(place) == [("withdrawn", f"submission {submission.id}", "wrong file")]
    with pytest.raises(UserError, match="was already removed from"):
        await moderation.withdraw(place.store, Viewer(place.ada), "", submission.id)


async def test_a_disqualified_submission_can_be_ranked_again(place: Place) -> None:
    submission = await place.submit(await place.person("eve"))
    await moderation.disqualify(place.store, Decision(place.ada, "reads the answer"), submission.id)
    found = await place.store.moderation.exclusion_of(submission.id)
    assert found is not None
    assert found.kind is ExclusionKind.DISQUALIFIED
    await moderation.requalify(place.store, Decision(place.ada, "it does not"), submission.id)
    assert await place.store.moderation.exclusion_of(submission.id) is None
    assert await audit(place) == [("requalify", f"submission {submission.id}", "it does not")]
    with pytest.raises(UserError, match="was not removed from"):
        await moderation.requalify(place.store, Decision(place.ada, ""), submission.id)
    with pytest.raises(UserError, match="no submission 99"):
        await moderation.disqualify(place.store, Decision(place.ada, ""), SubmissionId(99))


async def test_a_pause_begins_and_ends_once(place: Place) -> None:
    deed = Decision(place.ada, "a new driver")
    await moderation.pause(place.store, deed)
    assert await place.store.moderation.pause_notice() == "a new driver"
    assert await audit(place) == [("pause", "submissions", "a new driver")]
    await moderation.resume(place.store, deed)
    assert await place.store.moderation.pause_notice() is None
    with pytest.raises(UserError, match="are not paused"):
        await moderation.resume(place.store, deed)


async def test_a_ban_stops_what_is_unfinished_and_leaves_the_rest(place: Place) -> None:
    eve = await place.person("eve")
    done = await place.submit(eve)
    await place.judged(done)
    queued, others = await place.submit(eve), await place.submit()
    check, other_check = [
        await place.store.publications.add(NewPublication("web", person, b"", "{}"))
        for person in (eve, place.ada)
    ]
    assert await moderation.ban(place.store, Decision(place.ada, "floods"), "local:eve") == 1
    (job,) = await place.jobs(queued)
    assert job.state is JobState.CANCELLED
    (job,) = await place.jobs(others)
    assert job.state is JobState.QUEUED
    assert len(await place.store.results.evaluations(done.id)) == 1
    why = await place.store.publications.cancellation(check)
    assert why == "because its submitter is banned (floods)"
    assert await place.store.publications.cancellation(other_check) is None


async def test_a_board_is_paused_and_resumed_by_itself(place: Place) -> None:
    deed = Decision(place.ada, "a new task")
    await moderation.pause_board(place.store, deed, place.board)
    assert await audit(place) == [("pause", "board vectoradd", "a new task")]
    with pytest.raises(UserError, match="is paused: a new task") as refusal:
        await place.submit()
    assert refusal.value.code == "paused"
    await moderation.resume_board(place.store, deed, place.board)
    assert await audit(place) == [("resume", "board vectoradd", "a new task")]
    await place.submit()
    with pytest.raises(UserError, match="is not paused"):
        await moderation.resume_board(place.store, deed, place.board)


async def test_the_jobs_of_a_paused_gpu_type_wait(place: Place) -> None:
    deed = Decision(place.ada, "a new driver")
    assert await moderation.pause_gpu(place.store, deed, "cpu") == "CPU"
    assert await audit(place) == [("pause", "gpu CPU", "a new driver")]
    submission = await place.submit()
    assert await place.store.jobs.claim(Claim("w", {"CPU": 1}, timedelta(seconds=9))) == ()
    assert await moderation.resume_gpu(place.store, deed, "cpu") == "CPU"
    assert (await place.claim()).submission == submission.id
    with pytest.raises(UserError, match="is not paused"):
        await moderation.resume_gpu(place.store, deed, "CPU")
    with pytest.raises(UserError, match="no GPU type named 'B300'"):
        await moderation.pause_gpu(place.store, deed, "B300")


async def test_a_gpu_type_is_paused_by_each_of_its_names(place: Place) -> None:
    await place.store.boards.configure(place.board.id, ("CPU", "A100"), None)
    deed = Decision(place.ada, "a new driver")
    assert await moderation.pause_gpu(place.store, deed, "a100-40gb") == "A100"
    assert await moderation.resume_gpu(place.store, deed, "A100:8") == "A100"


async def test_limits_are_set_and_dropped(place: Place) -> None:
    limit = RateLimit(3, timedelta(hours=1))
    deed = Decision(place.ada, "crowded")
    await moderation.set_limit(place.store, deed, limit)
    assert await place.store.moderation.limits() == (limit,)
    assert await audit(place) == [("limit", "3 in 60 min, every board, every mode", "crowded")]
    await moderation.drop_limit(place.store, deed, None, None)
    assert await place.store.moderation.limits() == ()
    with pytest.raises(UserError, match="this limit does not exist"):
        await moderation.drop_limit(place.store, deed, None, None)


async def test_an_admin_limits_one_person_but_not_themselves(place: Place) -> None:
    eve, deed = await place.person("eve"), Decision(place.ada, "a flood")
    wanted = RateLimit(3, timedelta(days=1), until=place.clock.now() + timedelta(days=7))
    await moderation.set_limit(place.store, deed, wanted, "local:eve")
    kept = replace(wanted, person=eve, reason="a flood")
    assert await place.store.moderation.limits() == (kept,)
    words = "every board, every mode, person local:eve"
    assert await audit(place) == [("limit", f"3 in 24 h, {words}", "a flood")]
    (named,) = (await submission_rules(place.store)).limits
    assert named.person is not None
    assert named.person.id == eve
    with pytest.raises(UserError, match="your own account"):
        await moderation.set_limit(place.store, deed, wanted, "local:ada")
    with pytest.raises(UserError, match="you are limited; ask an admin"):
        await delete_account(place.store, place.clock, eve)
    with pytest.raises(UserError, match="this limit does not exist"):
        await moderation.drop_limit(place.store, deed, None, None)
    await moderation.drop_limit(place.store, deed, None, None, identity="local:eve")
    assert await audit(place) == [("unlimit", words, "a flood")]
    assert await place.store.moderation.limits() == ()


async def test_quotas_of_gpu_time_name_the_gpu_type_as_boards_do(place: Place) -> None:
    deed = Decision(place.ada, "dear")
    key = QuotaKey(Unit.SECONDS, board=place.board.id, gpu="cpu")
    stored = await moderation.set_quota(place.store, deed, Quota(key, 600))
    assert stored == Quota(replace(key, gpu="CPU"), 600)
    assert await place.store.costs.quotas() == (stored,)
    with pytest.raises(UserError, match="no GPU type named 'B300'"):
        await moderation.set_quota(place.store, deed, Quota(replace(key, gpu="B300"), 600))
    await moderation.drop_quota(place.store, deed, key)
    with pytest.raises(UserError, match="this quota does not exist"):
        await moderation.drop_quota(place.store, deed, key)
    covered = "each person, board vectoradd, CPU"
    rows = [(row.action, row.subject) for row in await place.store.audit.rows(2)]
    assert rows == [("unquota", f"seconds, {covered}"), ("quota", f"600 s a day, {covered}")]
