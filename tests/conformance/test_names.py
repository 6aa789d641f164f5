"""On a leaderboard, people whose names look alike are shown with their unique handles."""

import pytest

from bot.domain.accounts import DELETED_NAME, Person
from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.scoring import ScoreValue
from bot.services import moderation
from bot.services.standings import board_standings
from runners.contract.verdict import Verdict
from tests.doubles.clock import ManualClock
from tests.doubles.stored import LEASE, Scene, make_evaluation

CYRILLIC = "\N{CYRILLIC CAPITAL LETTER A}da"


async def ranked(scene: Scene, person: Person, time_ns: float, *, passes: bool = True) -> None:
    await scene.submit(person)
    job = await scene.claim_one()
    evaluation = make_evaluation(Verdict.PASSED if passes else Verdict.CRASHED)
    value = ScoreValue(time_ns, 1.0) if passes else None
    assert await scene.store.jobs.accept(job.id, job.fence, evaluation, value)


async def names(scene: Scene) -> list[str]:
    """Everyone on the leaderboard, as the standings show them."""
    viewer = Viewer(scene.ada.id)
    (found,) = await board_standings(scene.store, viewer, scene.board.name, "CPU")
    shown = [each.score.person_name for each in found.entries]
    return shown + [each.person_name for each in found.refused]


async def test_handles_are_shown_only_where_names_look_alike(scene: Scene) -> None:
    people = scene.store.people
    one = await people.ensure("discord:1", "Ada", "ada_l")
    two = await people.ensure("discord:2", CYRILLIC, "mallory")
    bob = await people.ensure("discord:3", "Bob", "bob")
    await people.ensure("discord:4", "Bob", "rob")  # submits nothing
    await ranked(scene, one, 10.0)
    await ranked(scene, bob, 20.0)
    assert await names(scene) == ["Ada", "Bob"]
    await ranked(scene, two, 30.0, passes=False)
    assert await names(scene) == ["Ada (@ada_l)", "Bob", f"{CYRILLIC} (@mallory)"]
    fastest = await scene.store.results.fastest([(scene.board.task_version, "CPU")])
    assert [each.person_name for each in fastest] == ["Ada (@ada_l)"]
    await people.ensure("discord:2", "Mallory", "mallory")
    assert await names(scene) == ["Ada", "Bob", "Mallory"]
    await people.ensure("discord:3", "Mallory", "bob2")
    assert await names(scene) == ["Ada", "Mallory (@bob2)", "Mallory (@mallory)"]


async def test_a_name_with_an_at_sign_never_passes_for_a_handle(scene: Scene) -> None:
    mallory = await scene.store.people.ensure("discord:2", "Ada (@ada)", "mallory")
    await ranked(scene, mallory, 10.0)
    assert await names(scene) == ["Ada (@ada) (@mallory)"]


async def test_without_a_handle_the_identity_is_shown(scene: Scene) -> None:
    ada = await scene.store.people.ensure("local:ada", "ada")
    other = await scene.store.people.ensure("discord:2", "Ada")
    await ranked(scene, ada, 10.0)
    await ranked(scene, other, 20.0)
    assert await names(scene) == ["ada (@local:ada)", "Ada (@discord:2)"]
    await scene.store.people.ensure("discord:2", "Ada", "ada_l")
    assert (await scene.store.people.ensure("discord:2", "Ada")).handle == "ada_l"
    assert await names(scene) == ["ada (@local:ada)", "Ada (@ada_l)"]


async def test_deleted_accounts_look_alike_and_have_no_handle(
    scene: Scene, clock: ManualClock
) -> None:
    people = scene.store.people
    for number in (1, 2):
        person = await people.ensure(f"discord:{number}", f"Person {number}", f"p{number}")
        await ranked(scene, person, 10.0 * number)
        clock.advance(86_400)
        await people.erase(person)
    pretender = await people.ensure("discord:3", DELETED_NAME, "mallory")
    await ranked(scene, pretender, 30.0)
    assert await names(scene) == [DELETED_NAME, DELETED_NAME, f"{DELETED_NAME} (@mallory)"]


async def test_a_reset_name_is_recorded_notified_and_not_chosen_again(scene: Scene) -> None:
    store = scene.store
    await store.people.ensure("discord:2", "Rude", "mallory")
    decision = moderation.Decision(scene.ada.id, "be kind")
    before = await moderation.reset_name(store, decision, "discord:2")
    assert before.name == "Rude"
    entry = (await store.audit.rows(1))[0]
    assert (entry.action, entry.subject) == ("reset-name", "person discord:2")
    assert entry.reason == "Rude: be kind"
    (told,) = await store.outbox.claim("discord", "me", LEASE)
    assert told.notification.addressee == "discord:2"
    assert told.notification.board is None
    assert "your name Rude (be kind)" in told.notification.text
    for again in ("Rude", "rude", "Rud\N{CYRILLIC SMALL LETTER IE}"):
        assert (await store.people.ensure("discord:2", again, "mallory")).name == "mallory"
    assert (await store.people.ensure("discord:2", "Kind", "mallory")).name == "Kind"
    assert (await store.people.ensure("discord:2", "Rude", "mallory")).name == "Kind"


async def test_a_name_that_is_the_handle_cannot_be_reset(scene: Scene) -> None:
    decision = moderation.Decision(scene.ada.id, "x")
    await scene.store.people.ensure("discord:2", "Mallory", "mallory")
    with pytest.raises(UserError, match="is already shown as Mallory"):
        await moderation.reset_name(scene.store, decision, "discord:2")
    with pytest.raises(UserError, match="knows no user name"):
        await moderation.reset_name(scene.store, decision, scene.ada.identity)
    with pytest.raises(UserError, match="no account here"):
        await moderation.reset_name(scene.store, decision, "discord:99")
