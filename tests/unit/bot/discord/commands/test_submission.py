from unittest.mock import AsyncMock, Mock

import discord
import pytest

from bot.discord.buttons import stored_message
from bot.discord.commands.submission import read
from bot.domain.acceptance import MAX_SOURCE_BYTES
from bot.domain.errors import UserError
from tests.doubles.place import Place


def attachment(size: int) -> discord.Attachment:
    return Mock(spec=discord.Attachment, size=size, read=AsyncMock(return_value=b"x" * 9))


@pytest.mark.parametrize("size", [1, MAX_SOURCE_BYTES - 1, MAX_SOURCE_BYTES])
async def test_a_file_within_the_limit_is_read(size: int) -> None:
    assert await read(attachment(size)) == b"x" * 9


@pytest.mark.parametrize("size", [MAX_SOURCE_BYTES + 1, 10 << 20, 500 << 20])
async def test_a_file_above_the_limit_is_not_even_fetched(size: int) -> None:
    file = Mock(spec=discord.Attachment, size=size)
    with pytest.raises(UserError, match=f"{size:,} bytes; at most 1,000,000"):
        await read(file)
    file.read.assert_not_awaited()


@pytest.mark.parametrize(
    ("guild", "allowed", "words"),
    [
        (None, "", "This conversation shows its progress."),
        (5, "view_channel create_private_threads send_messages_in_threads", "A private thread"),
        (
            5,
            "view_channel send_messages_in_threads",
            "your direct messages show its progress. `/submission show",
        ),
        (5, "view_channel create_private_threads", "your direct messages show its progress"),
    ],
)
async def test_it_is_said_where_the_submission_is_shown(
    place: Place, guild: int | None, allowed: str, words: str
) -> None:
    may = discord.Permissions(**dict.fromkeys(allowed.split(), True))
    where = Mock(spec=discord.Interaction, guild_id=guild, app_permissions=may)
    submission = await place.submit()
    said = stored_message(where, submission)
    assert said.startswith(f"Submission #{submission.id} is stored: ranked on CPU. ")
    assert words in said
