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


async def test_the_answer_says_where_the_submission_is_shown(place: Place) -> None:
    submission = await place.submit()
    said = stored_message(submission)
    assert said.startswith(f"Submission #{submission.id} is stored: ranked on CPU.\n")
    assert f"`/submission show id:{submission.id}` shows them at any time" in said
