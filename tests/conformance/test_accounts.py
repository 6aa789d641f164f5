"""A deleted account leaves its scores, and no other data of the person."""

import io
import json
import zipfile

import pytest

from bot.domain.accounts import DELETED_NAME, Rights
from bot.domain.costs import Quota, QuotaKey, Unit
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.notifications import NotificationKind
from bot.domain.records import InteractionRequest
from bot.domain.scoring import ScoreValue
from bot.domain.submission import Ban, ThreadKey, UntoldOutcome
from bot.services.accounts import delete_account, export_account
from tests.doubles.clock import ManualClock
from tests.doubles.stored import LEASE, Scene, make_evaluation

DAY_S = 86_400
LOG = "printed: my secret"


async def judged(scene: Scene, clock: ManualClock) -> int:
    """A ranked run of ada's with a display, a thread, a token, rights and settings."""
    store, ada = scene.store, scene.ada
    made = await scene.submit(source="ada's own idea")
    job = await scene.claim_one()
    value = ScoreValue(1e6, 1e3)
    made_of = make_evaluation().model_copy(update={"log": LOG})
    assert await store.jobs.accept(job.id, job.fence, made_of, value)
    key = ThreadKey("discord", "discord:1", scene.board.id, ada.id)
    await store.board_threads.claim(key, "me", LEASE)
    await store.board_threads.save(key, "me", "77")
    await store.displays.save_conversation(ada.id, "55")
    await store.tokens.add(ada.id, "1" * 64, "laptop")
    await store.rights.replace(ada.id, "discord-guild:1", Rights(frozenset({"discord-role:5"})))
    await store.listeners.listen(ada.identity, frozenset({NotificationKind.RECORD}))
    await store.boards.invite(scene.board.id, frozenset({ada.identity}))
    clock.advance(1)
    return made.id


async def test_an_export_has_all_data_of_the_person_and_none_of_others(
    scene: Scene, clock: ManualClock
) -> None:
    number = await judged(scene, clock)
    bob = await scene.store.people.ensure("local:bob", "bob")
    await scene.submit(bob, source="bob's own")
    found = await export_account(scene.store, scene.ada.id, 10 << 20)
    (data,) = found.zips
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        account = json.loads(archive.read("account.json"))
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert account["identity"] == scene.ada.identity
    assert account["direct_messages"] == "55"
    assert account["roles"] == ["discord-role:5"]
    assert account["notifications"] == ["record"]
    assert [each["label"] for each in account["tokens"]] == ["laptop"]
    assert [each["gpu"] for each in account["gpu_time"]] == ["CPU"]
    report = json.loads(texts[f"submissions/{number}.json"])
    assert report["evaluations"][0]["verdict"] == "passed"
    assert LOG not in str(texts)  # the log of a ranked run may have secret inputs
    assert any(text == "ada's own idea" for text in texts.values())
    assert not any("bob" in text for text in texts.values())


async def test_a_deleted_account_keeps_its_score_without_a_name(
    scene: Scene, clock: ManualClock
) -> None:
    store, ada = scene.store, scene.ada
    number = await judged(scene, clock)
    await store.submissions.write_note(SubmissionId(number), "how it works")
    assert await delete_account(store, clock, ada.id) == ("77",)
    gone = await store.people.get(ada.id)
    assert gone is not None
    assert (gone.name, gone.identity) == (DELETED_NAME, f"deleted:{ada.id}")
    assert await store.people.deleted() == {ada.id}
    (best,) = await store.results.entrants(scene.board.task_version, "CPU")
    assert (best.best.person, best.best.person_name) == (ada.id, DELETED_NAME)
    (made,) = await store.submissions.several([best.best.submission])
    assert (made.id, made.file_name, made.note) == (number, "deleted", "")
    assert await store.submissions.source(made.id) == ""
    (stored,) = await store.results.evaluations(made.id)
    assert stored.evaluation.log == ""
    assert await store.displays.find(made.id) is None
    assert await store.displays.conversation(ada.id) is None
    again = await store.people.ensure(ada.identity, "Ada")
    assert again.id != ada.id
    assert await store.submissions.history(again.id) == ()


@pytest.mark.parametrize(
    "store_dsn", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
async def test_an_outcome_that_was_not_sent_is_deleted_with_the_account(
    scene: Scene, clock: ManualClock
) -> None:
    interactions, ada = scene.store.interactions, scene.ada
    asked = InteractionRequest("discord:1", "discord", "{}", "a token", clock.now())
    assert await interactions.claim(asked, "one", LEASE)
    outcome = UntoldOutcome(ada.identity, "a run of mine")
    assert await interactions.finish(asked.id, "one", untold=outcome)
    assert await interactions.take_untold(ada.identity, "discord:9") == "a run of mine"
    await delete_account(scene.store, clock, ada.id)
    assert await interactions.take_untold(ada.identity, "discord:9") is None


async def test_an_account_is_not_deleted_while_a_ban_a_limit_or_a_quota_counts(
    scene: Scene, clock: ManualClock
) -> None:
    store, ada = scene.store, scene.ada
    await judged(scene, clock)
    await store.moderation.ban(ada.id, Ban("forged"))
    with pytest.raises(UserError, match="you are banned"):
        await delete_account(store, clock, ada.id)
    await store.moderation.unban(ada.id)
    await store.costs.set_quota(Quota(QuotaKey(Unit.SECONDS, each_person=True), 60.0))
    with pytest.raises(UserError, match="limits still count"):
        await delete_account(store, clock, ada.id)
    clock.advance(DAY_S)
    await delete_account(store, clock, ada.id)


async def test_a_quota_of_one_person_keeps_only_their_account(
    scene: Scene, clock: ManualClock
) -> None:
    store, ada = scene.store, scene.ada
    bob = await store.people.ensure("local:bob", "Bob")
    await judged(scene, clock)
    await store.costs.set_quota(Quota(QuotaKey(Unit.SECONDS, person=bob.id), 60.0))
    with pytest.raises(UserError, match="you are limited"):
        await delete_account(store, clock, bob.id)
    await delete_account(store, clock, ada.id)


async def test_running_submissions_are_stopped_before_a_deletion(
    scene: Scene, clock: ManualClock
) -> None:
    store, ada = scene.store, scene.ada
    await scene.submit()
    job = await scene.claim_one()
    await scene.submit()
    with pytest.raises(UserError, match="has not ended yet"):
        await delete_account(store, clock, ada.id)
    found = await store.jobs.get(job.id)
    assert found is not None
    assert found.cancel_requested
    assert await store.jobs.end_cancelled(job.id, job.fence)
    await delete_account(store, clock, ada.id)


async def test_an_equal_source_of_another_person_stays(scene: Scene, clock: ManualClock) -> None:
    bob = await scene.store.people.ensure("local:bob", "bob")
    made = None
    for who in (None, bob):
        made = await scene.submit(who, source="the same")
        job = await scene.claim_one()
        value = ScoreValue(1e6, 1e3)
        assert await scene.store.jobs.accept(job.id, job.fence, make_evaluation(), value)
    await delete_account(scene.store, clock, scene.ada.id)
    assert made is not None
    assert await scene.store.submissions.source(made.id) == "the same"
