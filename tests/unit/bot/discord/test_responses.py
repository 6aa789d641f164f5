from unittest.mock import AsyncMock, Mock

import discord
import pytest

from bot.discord.responses import (
    ALREADY_ANSWERED,
    SupersededError,
    as_files,
    direct_response,
    replying,
)
from bot.domain.errors import UserError
from bot.reports.blocks import Attachment, Report, Text


def refusal(code: int, status: int = 400) -> discord.HTTPException:
    return discord.HTTPException(Mock(status=status, reason=""), {"code": code, "message": "no"})


def refuse(words: str) -> None:
    raise UserError("closed", words)


def clicked() -> Mock:
    """An interaction that notes in which order it was answered."""
    found = Mock(spec=discord.Interaction)
    found.order = Mock()
    found.response.defer = AsyncMock(side_effect=lambda **_: found.order("defer"))
    found.response.send_message = AsyncMock()
    found.followup.send = AsyncMock(side_effect=lambda text, **_: found.order(text))
    return found


def said(interaction: Mock) -> list[str]:
    return [call.args[0] for call in interaction.order.call_args_list]


async def test_it_is_acknowledged_before_anything_else() -> None:
    interaction = clicked()
    async with replying(interaction) as answer:
        await answer.show(Report("standings", (Text("nobody"),)))
    assert said(interaction) == ["defer", "**standings**\nnobody"]
    assert interaction.followup.send.await_args.kwargs["ephemeral"]


async def test_what_went_wrong_is_told_and_goes_no_further() -> None:
    interaction = clicked()
    async with replying(interaction):
        refuse("the board is closed *now*")
    assert said(interaction) == ["defer", r"the board is closed \*now\*"]


async def test_when_another_copy_has_answered_nothing_is_done() -> None:
    interaction = clicked()
    interaction.response.defer.side_effect = refusal(ALREADY_ANSWERED)
    done = False
    with pytest.raises(SupersededError):
        async with replying(interaction):
            done = True
    assert not done
    assert said(interaction) == []


async def test_without_acknowledgement_nothing_is_done_either() -> None:
    interaction = clicked()
    interaction.response.defer.side_effect = refusal(0, 500)
    done = False
    with pytest.raises(discord.HTTPException):
        async with replying(interaction):
            done = True
    assert not done


async def test_a_person_who_cannot_be_told_ends_nothing() -> None:
    interaction = clicked()
    interaction.followup.send.side_effect = refusal(50027, 401)
    async with replying(interaction):
        refuse("the board is closed")
    assert said(interaction) == ["defer"]


async def test_a_form_that_comes_too_late_gives_way() -> None:
    with pytest.raises(SupersededError):
        async with direct_response(clicked()):
            raise refusal(ALREADY_ANSWERED)


async def test_files_are_read_once_each_and_described_within_the_limit() -> None:
    (file,) = as_files([Attachment("plot.png", b"x", about="y" * 5000)])
    assert file.fp.read() == b"x"
    assert len(file.description or "") == 1024
