from unittest.mock import Mock

import aiohttp
import discord
import pytest
from discord import app_commands

from bot.discord.responses import SupersededError, error_message, is_superseded, is_temporary
from bot.domain.errors import StoreError, UserError
from runners.contract.runner import RunnerError


def refusal(status: int, code: int = 0) -> discord.HTTPException:
    response = Mock(status=status, reason="because")
    return discord.HTTPException(response, {"code": code, "message": "no"})


def refused_option(cause: Exception | None) -> app_commands.TransformerError:
    """Return what discord.py raises when an option's value is refused."""
    kind = discord.AppCommandOptionType.channel
    error = app_commands.TransformerError("news", kind, app_commands.Transformer())
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (refused_option(UserError("wrong-channel", "choose a text channel")), "⚠️ Choose a text"),
        (refused_option(None), "⚠️ An option has a value that cannot"),
        (UserError("closed", "it is *closed*"), r"⚠️ It is \*closed\*"),
        (app_commands.CheckFailure("⚠️ Not you"), "⚠️ Not you"),
        (StoreError("away"), "Internal error"),
        (RunnerError("away"), "Internal error"),
        (refusal(500), "Discord rejected"),
        (aiohttp.ClientError(), "Discord rejected"),
        (KeyError("x"), "bug in Podium"),
        (ExceptionGroup("several", [UserError("a", "inner")]), "inner"),
    ],
)
def test_every_family_has_its_words(error: Exception, words: str) -> None:
    found = error_message(error)
    assert found is not None
    assert words in found


def test_who_gave_way_says_nothing() -> None:
    assert error_message(SupersededError()) is None


def test_an_incident_has_an_id_and_no_detail() -> None:
    found = error_message(ValueError("password=hunter2"))
    assert found is not None
    assert "incident" in found
    assert "hunter2" not in found


@pytest.mark.parametrize(("code", "gave"), [(40060, True), (10062, True), (50013, False)])
def test_an_answered_or_unknown_interaction_is_given_way(code: int, gave: bool) -> None:  # noqa: FBT001
    assert is_superseded(refusal(400, code)) is gave


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (refusal(500), True),
        (refusal(429), True),
        (refusal(403), False),
        (TimeoutError(), True),
        (aiohttp.ClientError(), True),
        (ValueError(), False),
    ],
)
def test_what_passes_by_itself_is_told_from_what_does_not(error: Exception, passing: bool) -> None:  # noqa: FBT001
    assert is_temporary(error) is passing
