"""Tests of authors' notes about their submissions."""

import pytest

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.submission import Ban
from bot.services.moderation import LONGEST_NOTE, write_note
from bot.services.status import read_submission
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


async def test_only_its_author_writes_a_note(place: Place) -> None:
    made, bo = await place.submit(), Viewer(await place.person("bo"))
    await write_note(place.store, Viewer(place.ada), made.id, "  one\r\ntwo  ")
    for other in (bo, Viewer(bo.person, sees_all=True)):
        with pytest.raises(UserError, match="another person"):
            await write_note(place.store, other, made.id, "mine")
    with pytest.raises(UserError, match="another person"):
        await write_note(place.store, bo, made.id, "")
    (found,) = await place.store.submissions.several([made.id])
    assert found.note == "one\ntwo"


async def test_a_note_is_bounded_and_a_banned_author_writes_none(place: Place) -> None:
    made, ada = await place.submit(), Viewer(place.ada)
    await write_note(place.store, ada, made.id, "x" * LONGEST_NOTE)
    with pytest.raises(UserError, match="at most 4000 characters"):
        await write_note(place.store, ada, made.id, "x" * (LONGEST_NOTE + 1))
    await place.store.moderation.ban(place.ada, Ban("spam"))
    with pytest.raises(UserError, match="spam"):
        await write_note(place.store, ada, made.id, "more")


async def test_an_admin_removes_a_note_which_is_recorded(place: Place) -> None:
    made, admin = await place.submit(), await place.person("root")
    await write_note(place.store, Viewer(place.ada), made.id, "rude")
    await write_note(place.store, Viewer(admin, sees_all=True), made.id, "")
    (found,) = await place.store.submissions.several([made.id])
    assert found.note == ""
    (row,) = await place.store.audit.rows(1)
    assert (row.actor, row.action, row.subject) == (admin, "remove-note", f"submission {made.id}")


async def test_a_viewer_who_may_not_read_the_source_does_not_get_the_note(place: Place) -> None:
    made, bo = await place.submit(), Viewer(await place.person("bo"))
    await write_note(place.store, Viewer(place.ada), made.id, "a secret trick")
    read = await read_submission(place.store, place.clock, bo, made.id)
    assert read.submission.note == ""
    own = await read_submission(place.store, place.clock, Viewer(place.ada), made.id)
    assert own.submission.note == "a secret trick"
