import io
import zipfile

import pytest

from bot.domain.board import Access, SourceVisibility, Viewer
from bot.domain.errors import UserError
from bot.domain.publication import PublishRequest
from bot.services.boards import Deletion, board_archive, delete_board
from bot.services.publishing.publish import publish
from tests.doubles.factories import make_task
from tests.doubles.place import Place

MIB = 1 << 20
TYPED = Deletion("vectoradd", "-vectoradd"[1:], "over")


async def test_a_deleted_board_hands_out_its_task_and_its_sources(place: Place) -> None:
    submission = await place.submit(content=b"x = 1\n")
    ada = Viewer(place.ada)
    kept = await board_archive(place.store, ada, TYPED, zip_bytes=MIB)
    (data,) = kept.zips
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.read(f"submissions/{submission.id}-kernel.py") == b"x = 1\n"
        assert "task/1/reference.py" in archive.namelist()
    assert await place.store.boards.find("vectoradd") is not None
    await delete_board(place.store, ada, TYPED, kept)
    assert await place.store.boards.find("vectoradd") is None
    (row,) = await place.store.audit.rows(1)
    assert (row.actor, row.action, row.reason) == (place.ada, "delete-board", "over")


async def test_a_creator_receives_no_source_that_only_its_submitter_and_admins_may_read(
    place: Place,
) -> None:
    access = Access(source=SourceVisibility.NEVER)
    await place.store.boards.restrict(place.board.id, access)
    own = await place.submit(content=b"x = 1\n")
    other = await place.submit(await place.person("bob"), content=b"x = 2\n")
    for sees_all, numbers in ((False, [own.id]), (True, [own.id, other.id])):
        viewer = Viewer(place.ada, sees_all=sees_all)
        kept = await board_archive(place.store, viewer, TYPED, zip_bytes=MIB)
        (data,) = kept.zips
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
        assert [name for name in names if name.startswith("submissions/")] == [
            f"submissions/{number}-kernel.py" for number in numbers
        ]
        assert kept.submissions == 2


async def test_many_sources_come_in_several_zips_none_of_which_is_too_large(place: Place) -> None:
    numbers = [(await place.submit(content=f"x = {n}\n".encode() * 400)).id for n in range(20)]
    kept = await board_archive(place.store, Viewer(place.ada), TYPED, zip_bytes=16_384)
    assert len(kept.zips) > 1
    assert all(len(each) <= 16_384 for each in kept.zips)
    names = [name for each in kept.zips for name in zipfile.ZipFile(io.BytesIO(each)).namelist()]
    assert [name for name in names if name.startswith("submissions/")] == [
        f"submissions/{number}-kernel.py" for number in numbers
    ]


async def test_what_was_not_handed_out_is_not_deleted(place: Place) -> None:
    ada = Viewer(place.ada)
    kept = await board_archive(place.store, ada, TYPED, zip_bytes=MIB)
    await place.submit()
    with pytest.raises(UserError, match="nothing was deleted; run the command again"):
        await delete_board(place.store, ada, TYPED, kept)
    assert await place.store.boards.find("vectoradd") is not None


async def test_a_task_version_that_was_not_handed_out_is_not_deleted(place: Place) -> None:
    ada = Viewer(place.ada)
    kept = await board_archive(place.store, ada, TYPED, zip_bytes=MIB)
    changed = make_task(description="Another one.")
    await publish(place.store, place.clock, PublishRequest(place.ada), changed)
    with pytest.raises(UserError, match="has changed in the meantime"):
        await delete_board(place.store, ada, TYPED, kept)
    assert await place.store.boards.find("vectoradd") is not None


async def test_a_board_stays_unless_its_own_name_is_typed_by_its_own_creator(place: Place) -> None:
    bob = Viewer(await place.person("bob"))
    wrong = Deletion("vectoradd", "vectorad")
    with pytest.raises(UserError, match="nothing was deleted"):
        await board_archive(place.store, Viewer(place.ada), wrong, zip_bytes=MIB)
    with pytest.raises(UserError, match="another person"):
        await board_archive(place.store, bob, TYPED, zip_bytes=MIB)
    kept = await board_archive(place.store, Viewer(place.ada), TYPED, zip_bytes=MIB)
    with pytest.raises(UserError, match="another person"):
        await delete_board(place.store, bob, TYPED, kept)
