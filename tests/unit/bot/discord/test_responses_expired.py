"""Who clicks on what nobody remembers is told; who is answered hears nothing more."""

from unittest.mock import AsyncMock, Mock

import discord
import pytest

from bot.discord import responses
from bot.discord.responses import ALREADY_ANSWERED

COMPONENT = discord.InteractionType.component


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "GRACE_S", 0.0)


def interaction(kind: discord.InteractionType, *, done: bool = False) -> Mock:
    response = Mock(is_done=Mock(return_value=done), send_message=AsyncMock())
    client = Mock(is_closed=Mock(return_value=False))
    return Mock(type=kind, response=response, client=client)


def refusal(code: int) -> discord.HTTPException:
    return discord.HTTPException(Mock(status=400, reason="refused"), {"code": code, "message": ""})


@pytest.mark.parametrize("kind", [COMPONENT, discord.InteractionType.modal_submit])
async def test_what_nobody_answers_is_answered(kind: discord.InteractionType) -> None:
    clicked = interaction(kind)
    await responses.answer_unhandled_click(clicked)
    clicked.response.send_message.assert_awaited_once_with(responses.EXPIRED, ephemeral=True)


@pytest.mark.parametrize(
    ("kind", "done"), [(COMPONENT, True), (discord.InteractionType.application_command, False)]
)
async def test_what_is_answered_and_every_command_is_left_alone(
    kind: discord.InteractionType, *, done: bool
) -> None:
    clicked = interaction(kind, done=done)
    await responses.answer_unhandled_click(clicked)
    clicked.response.send_message.assert_not_awaited()


@pytest.mark.parametrize(
    "error",
    [
        refusal(ALREADY_ANSWERED),
        refusal(50035),
        TimeoutError(),
        discord.InteractionResponded(Mock()),
    ],
)
async def test_another_copys_answer_and_a_discord_that_is_away_are_no_incident(
    error: Exception,
) -> None:
    clicked = interaction(COMPONENT)
    clicked.response.send_message.side_effect = error
    await responses.answer_unhandled_click(clicked)
    clicked.response.send_message.assert_awaited_once()
    assert clicked.followup.mock_calls == []


async def test_a_bot_that_ends_meanwhile_leaves_it_to_the_next_one() -> None:
    clicked = interaction(COMPONENT)
    clicked.client.is_closed.return_value = True
    await responses.answer_unhandled_click(clicked)
    clicked.response.send_message.assert_not_awaited()
