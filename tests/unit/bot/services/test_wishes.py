"""What is wanted of a board reads as it was written, whoever reads it."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.domain.access import Access, SourceVisibility, Visibility
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, TaskVersionId
from bot.domain.scaffold import scaffold
from bot.services import wishes
from bot.services.apart import Apart
from bot.services.wishes import WISH, Wish, read
from tests.doubles.factories import make_task
from tests.doubles.task_zips import packed


def test_a_wish_survives_being_stored() -> None:
    access = Access(Visibility.PRIVATE, "discord-guild:1", SourceVisibility.NEVER, frozenset({"x"}))
    wish = Wish(
        PersonId(3),
        "adding",
        ("CPU", "H100"),
        datetime(2099, 1, 31, 17, tzinfo=UTC),
        as_admin=True,
        access=access,
        onto=TaskVersionId(7),
        zip_name="vectoradd",
        strict=False,
    )
    assert WISH.validate_json(WISH.dump_json(wish)) == wish
    request = wish.request(make_task())
    assert (request.board_name, request.onto, request.access) == ("adding", 7, access)


BOMB = f'{scaffold("double")["reference.py"]}\nx = f"{"{a}" * 300_000}"\n'


async def test_a_zip_is_read_apart_from_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    wish = Wish(PersonId(1), "", (), None)
    bundle, parsed = await read(packed()[2], wish)
    assert (bundle.root, parsed.task.name) == ("double", "double")
    monkeypatch.setattr(wishes, "TASKS", Apart(0.6, 60))
    reading, turns = asyncio.create_task(read(packed(reference__py=BOMB)[2], wish)), 0
    while not reading.done():
        await asyncio.sleep(0.01)
        turns += 1
    with pytest.raises(UserError, match="make it smaller") as refused:
        await reading
    assert refused.value.code == "too-hard"
    assert turns > 10


async def test_unknown_keys_are_refused_unless_the_wish_is_lenient() -> None:
    foreign = scaffold("double")["task.yml"] + "\nreward: 100\n"
    wish = Wish(PersonId(1), "", (), None)
    with pytest.raises(UserError, match="unknown key 'reward'"):
        await read(packed(task__yml=foreign)[2], wish)
    _, parsed = await read(packed(task__yml=foreign)[2], replace(wish, strict=False))
    assert parsed.task.name == "double"
    assert "unknown key 'reward'" in parsed.warnings[0]


async def test_what_is_wrong_with_a_zip_is_told_with_file_and_line() -> None:
    wish = Wish(PersonId(1), "", (), None)
    with pytest.raises(UserError, match=r"double/reference.py:1: Python cannot parse this"):
        await read(packed(reference__py="def")[2], wish)
    long = "#" * 1_000_001
    with pytest.raises(UserError, match="a submission has at most 1,000,000 bytes"):
        await read(packed(**{"solutions/correct/long__py": long})[2], wish)
