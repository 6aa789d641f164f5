import io
import zipfile

import pytest

from bot.domain.access import Viewer
from bot.domain.errors import UserError
from bot.services.delete_board import Deletion, delete_board
from tests.doubles.place import Place


async def test_a_deleted_board_hands_out_its_task_and_its_sources(place: Place) -> None:
    submission = await place.submit(content=b"x = 1\n")
    deletion = Deletion("vectoradd", "vectoradd", "over")
    kept = await delete_board(place.store, Viewer(place.ada), deletion)
    with zipfile.ZipFile(io.BytesIO(kept)) as archive:
        assert archive.read(f"submissions/{submission.id}-kernel.py") == b"x = 1\n"
        assert "task/1/reference.py" in archive.namelist()
    assert await place.store.boards.find("vectoradd") is None
    (row,) = await place.store.audit.rows(1)
    assert (row.actor, row.action, row.reason) == (place.ada, "delete-board", "over")


async def test_a_board_stays_unless_its_own_name_is_typed_by_its_own_creator(place: Place) -> None:
    bob = Viewer(await place.person("bob"))
    with pytest.raises(UserError, match="nothing was deleted"):
        await delete_board(place.store, Viewer(place.ada), Deletion("vectoradd", "vectorad"))
    with pytest.raises(UserError, match="somebody else"):
        await delete_board(place.store, bob, Deletion("vectoradd", "vectoradd"))
    assert await place.store.boards.find("vectoradd") is not None
