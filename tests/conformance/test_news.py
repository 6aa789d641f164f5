"""What every store must do with listeners and with news on its way."""

from datetime import timedelta

from bot.domain.ids import BoardId, JobId, NotificationId
from bot.domain.notifications import Notification, NotificationKind
from bot.domain.scoring import ScoreValue
from runners.contract.verdict import Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.stored import LEASE, Scene, make_evaluation

SCORE = ScoreValue(100.0, 1.0)


def make_news(scene: Scene, key: str = "k1", addressee: str = "discord:17") -> Notification:
    return Notification(key, NotificationKind.RECORD, addressee, scene.board.id, "a record\0")


async def test_listeners_are_told_of_just_what_they_asked_for(scene: Scene) -> None:
    listeners = scene.store.listeners
    both = frozenset({NotificationKind.RECORD, NotificationKind.DEADLINE})
    await listeners.listen("discord:17", both)
    await listeners.listen("discord-channel:5", frozenset({NotificationKind.RECORD}))
    assert await listeners.kinds("discord:17") == both
    assert await listeners.kinds("discord:18") == frozenset()
    assert await listeners.to(NotificationKind.RECORD) == ("discord-channel:5", "discord:17")
    await listeners.listen("discord:17", frozenset({NotificationKind.LOST_RANK}))
    assert await listeners.to(NotificationKind.RECORD) == ("discord-channel:5",)
    await listeners.listen("discord:17", frozenset())
    assert await listeners.to(NotificationKind.LOST_RANK) == ()


async def test_an_accepted_score_waits_until_it_is_settled(
    scene: Scene, clock: ManualClock
) -> None:
    outbox = scene.store.outbox
    submissions = [await scene.submit() for _ in range(3)]
    jobs = [await scene.claim_one() for _ in range(3)]
    await scene.store.jobs.accept(jobs[1].id, jobs[1].fence, make_evaluation(), SCORE)
    clock.advance(1)
    await scene.store.jobs.accept(jobs[0].id, jobs[0].fence, make_evaluation(), SCORE)
    wrong = make_evaluation(Verdict.WRONG_ANSWER)
    await scene.store.jobs.accept(jobs[2].id, jobs[2].fence, wrong, None)
    first, second = await outbox.unannounced()
    assert (first.submission, second.submission) == (submissions[1].id, submissions[0].id)
    assert (first.job, first.gpu) == (jobs[1].id, "CPU")
    assert (first.board, first.task_version) == (scene.board.id, scene.board.task_version)
    assert await outbox.unannounced(1) == (first,)
    assert await outbox.mark_announced(first.job, [make_news(scene)])
    assert not await outbox.mark_announced(first.job, [make_news(scene, "k2")])
    assert not await outbox.mark_announced(JobId(999), [])
    assert await outbox.unannounced() == (second,)
    (letter,) = await outbox.claim("discord", "one", LEASE, 10)
    assert letter.notification.key == "k1"


async def test_news_of_one_key_is_kept_once(scene: Scene) -> None:
    outbox = scene.store.outbox
    assert await outbox.put([]) == 0
    assert await outbox.put([make_news(scene), make_news(scene, "k2")]) == 2
    assert await outbox.put([make_news(scene), make_news(scene, "k3")]) == 1
    gone = Notification("k4", NotificationKind.RECORD, "discord:17", BoardId(999), "of no board")
    assert await outbox.put([gone]) == 0
    letters = await outbox.claim("discord", "one", LEASE, 10)
    assert [each.notification.key for each in letters] == ["k1", "k2", "k3"]
    assert letters[0].notification.text == "a record␀"
    await outbox.mark_sent(letters[0].id, "one")
    assert await outbox.put([make_news(scene)]) == 0


async def test_a_letter_is_held_by_one_until_its_lease_runs_out(
    scene: Scene, clock: ManualClock
) -> None:
    outbox = scene.store.outbox
    await outbox.put([make_news(scene), make_news(scene, "k2", "elsewhere:1")])
    (letter,) = await outbox.claim("discord", "one", LEASE, 10)
    assert (letter.tries, letter.doubtful) == (1, False)
    assert await outbox.claim("discord", "two", LEASE) == ()
    clock.advance(31)
    (again,) = await outbox.claim("discord", "two", LEASE)
    assert (again.id, again.tries, again.doubtful) == (letter.id, 2, True)
    assert not await outbox.mark_sent(letter.id, "one")
    assert not await outbox.mark_refused(letter.id, "one", "late")
    assert not await outbox.retry_later(letter.id, "one", LEASE)
    assert await outbox.mark_sent(letter.id, "two")
    assert not await outbox.mark_sent(letter.id, "two")
    clock.advance(31)
    assert await outbox.claim("discord", "two", LEASE) == ()
    assert len(await outbox.claim("elsewhere", "two", LEASE)) == 1


async def test_a_letter_that_comes_back_waits(scene: Scene, clock: ManualClock) -> None:
    outbox = scene.store.outbox
    await outbox.put([make_news(scene), make_news(scene, "k2")])
    first, second = await outbox.claim("discord", "one", LEASE, 10)
    assert await outbox.retry_later(first.id, "one", timedelta(seconds=5))
    assert await outbox.mark_refused(second.id, "one", "forbidden")
    assert await outbox.claim("discord", "one", LEASE, 10) == ()
    clock.advance(5)
    (again,) = await outbox.claim("discord", "one", LEASE, 10)
    assert (again.id, again.tries, again.doubtful) == (first.id, 2, True)
    assert not await outbox.mark_sent(NotificationId(999), "one")


async def test_what_was_delivered_is_forgotten_in_time(scene: Scene, clock: ManualClock) -> None:
    outbox = scene.store.outbox
    await outbox.put([make_news(scene), make_news(scene, "k2")])
    (letter,) = await outbox.claim("discord", "one", LEASE)
    await outbox.mark_sent(letter.id, "one")
    assert await outbox.delete_finished(timedelta(days=1)) == 0
    clock.advance(2 * 24 * 3600)
    assert await outbox.delete_finished(timedelta(days=1)) == 1
    assert await outbox.put([make_news(scene), make_news(scene, "k2")]) == 1


async def test_the_news_of_a_board_goes_with_it(scene: Scene) -> None:
    await scene.submit()
    job = await scene.claim_one()
    await scene.store.jobs.accept(job.id, job.fence, make_evaluation(), SCORE)
    await scene.store.outbox.put([make_news(scene)])
    assert await scene.store.boards.delete(scene.board.id)
    assert await scene.store.outbox.unannounced() == ()
    assert await scene.store.outbox.claim("discord", "one", LEASE) == ()


async def test_notices_of_results_are_offered_below_one_submission(scene: Scene) -> None:
    first, second = await scene.submit(), await scene.submit()
    people = scene.store.people
    assert await people.offer_notifications(scene.ada.id, first.id)
    assert await people.offer_notifications(scene.ada.id, first.id)
    assert not await people.offer_notifications(scene.ada.id, second.id)
    bob = await people.ensure("local:bob", "bob")
    assert await people.offer_notifications(bob.id, second.id)
    wanted = frozenset({NotificationKind.RESULT})
    await scene.store.listeners.listen("discord:2", wanted)
    assert await scene.store.listeners.kinds("discord:2") == wanted
