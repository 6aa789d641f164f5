"""What every store must do with the names that people choose: they stay, and change rarely."""

from datetime import timedelta

import pytest

from bot.domain.errors import UserError
from bot.services.accounts import RENAME_PAUSE, choose_name
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene

HOUR = timedelta(hours=1)


async def test_a_chosen_name_stays_whatever_the_front_end_reports(
    scene: Scene, clock: ManualClock
) -> None:
    people, ada = scene.store.people, scene.ada
    assert (await people.ensure(ada.identity, "Ada L.")).name == "Ada L."
    renamed = await people.rename(ada.id, "Countess", HOUR)
    assert renamed is not None
    assert (renamed.id, renamed.identity, renamed.name) == (ada.id, ada.identity, "Countess")
    assert (await people.ensure(ada.identity, "Ada B.")).name == "Countess"
    found = await people.get(ada.id)
    assert found is not None
    assert found.name == "Countess"
    assert (await people.ensure("local:eve", "Eve")).name == "Eve"


async def test_a_name_changes_only_once_per_pause(scene: Scene, clock: ManualClock) -> None:
    people, ada = scene.store.people, scene.ada
    assert await people.rename(ada.id, "one", HOUR) is not None
    clock.advance(3599)
    assert await people.rename(ada.id, "two", HOUR) is None
    clock.advance(1)
    assert await people.rename(ada.id, "two", HOUR) is not None


async def test_a_deleted_account_keeps_no_chosen_name(scene: Scene) -> None:
    people, ada = scene.store.people, scene.ada
    renamed = await people.rename(ada.id, "Countess", HOUR)
    assert renamed is not None
    await people.erase(renamed)
    assert await people.rename(ada.id, "Countess", HOUR) is None
    found = await people.get(ada.id)
    assert found is not None
    assert found.name == "deleted account"


@pytest.mark.parametrize(
    "typed",
    [
        "",
        " \t ",
        "x" * 33,
        "a\u202eb",
        "a\u200bb",
        "a\0b",
        "a\x1b[31m",
        "Podium",
        "DELETED account",
    ],
)
async def test_some_names_cannot_be_chosen(scene: Scene, typed: str) -> None:
    with pytest.raises(UserError) as refused:
        await choose_name(scene.store, scene.ada, typed)
    assert refused.value.code == "bad-name"


@pytest.mark.parametrize(
    ("typed", "words"),
    [("x" * 100, "yours has 100"), ("admin\u202e", r"yours has U\+202E"), ("  ", "yours has 0")],
)
async def test_a_refused_name_says_what_is_wrong_with_it(
    scene: Scene, typed: str, words: str
) -> None:
    with pytest.raises(UserError, match=words):
        await choose_name(scene.store, scene.ada, typed)


async def test_a_choice_is_recorded_and_limited(scene: Scene, clock: ManualClock) -> None:
    renamed = await choose_name(scene.store, scene.ada, "  Ada\n  Lovelace ")
    assert renamed.name == "Ada Lovelace"
    (entry,) = await scene.store.audit.rows(9)
    assert (entry.action, entry.subject) == ("rename", f"person {scene.ada.identity}")
    assert entry.reason.endswith("is now Ada Lovelace")
    with pytest.raises(UserError, match="once an hour"):
        await choose_name(scene.store, renamed, "Countess")
    assert len(await scene.store.audit.rows(9)) == 1
    clock.advance(RENAME_PAUSE.total_seconds())
    assert (await choose_name(scene.store, renamed, "<b>'); --")).name == "<b>'); --"


async def test_a_name_that_an_admin_reset_is_not_chosen_again(scene: Scene) -> None:
    people = scene.store.people
    mallory = await people.ensure("discord:9", "Mallory", "mallory")
    rude = await people.rename(mallory.id, "Rude", HOUR)
    assert rude is not None
    reset = await people.reset_name(rude)
    assert reset is not None
    assert reset.name == "mallory"
    assert await people.rename(mallory.id, "rude", timedelta()) is None
    assert (await people.ensure("discord:9", "Mallory", "mallory")).name == "mallory"
    chosen = await people.rename(mallory.id, "M", timedelta())
    assert chosen is not None
    assert chosen.name == "M"
