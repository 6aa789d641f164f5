from types import SimpleNamespace
from typing import cast

import discord
import pytest

from bot.discord.roles import is_trusted


def client(
    *, public: bool, team: tuple[int, ...] = (), named: frozenset[int] = frozenset()
) -> discord.Client:
    """A client as discord.py has it once it is logged in."""
    members = [SimpleNamespace(id=each) for each in team]
    application = SimpleNamespace(
        bot_public=public,
        owner=SimpleNamespace(id=1),
        team=SimpleNamespace(members=members) if team else None,
    )
    found = SimpleNamespace(application=application, trusted_guilds=named)
    return cast("discord.Client", found)


def guild(owner: int) -> discord.Guild:
    return cast("discord.Guild", SimpleNamespace(id=9, owner_id=owner))


@pytest.mark.parametrize(
    ("bot", "of", "trusted"),
    [
        (client(public=False), guild(5), True),
        (client(public=True), guild(5), False),
        (client(public=True), guild(1), True),
        (client(public=True, team=(5, 6)), guild(5), True),
        (client(public=False, named=frozenset({8})), guild(1), False),
        (client(public=True, named=frozenset({9})), guild(5), True),
    ],
)
def test_roles_count_on_the_installations_own_servers(
    bot: discord.Client,
    of: discord.Guild,
    trusted: bool,  # noqa: FBT001
) -> None:
    assert is_trusted(bot, of) is trusted


def test_before_the_bot_knows_whose_it_is_nobody_is_trusted() -> None:
    unknown = SimpleNamespace(application=None, trusted_guilds=frozenset[int]())
    assert not is_trusted(cast("discord.Client", unknown), guild(1))
