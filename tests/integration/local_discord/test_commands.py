"""What commands may be called and hold, and how they are registered."""

import pytest

from tests.doubles.discord.wire import Json
from tests.integration.local_discord.stage import ByHand


def command(**more: object) -> Json:
    return {"name": "c", "description": "d", **more}


def option(**more: object) -> Json:
    return {"type": 3, "name": "o", "description": "d", **more}


def choice(name: str) -> Json:
    return {"name": name, "value": "v"}


def path(hand: ByHand) -> str:
    return f"/applications/{hand.server.world.bot.id}/commands"


NESTED = option(type=2, name="g", options=[option(type=2, name="h")])
LARGE = [
    option(
        name=f"o{i}",
        description="d" * 100,
        choices=[choice(f"{j}{'n' * 90}") for j in range(9)],
    )
    for i in range(10)
]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (command(name="Upper"), "APPLICATION_COMMAND_INVALID_NAME"),
        (command(name="two words"), "APPLICATION_COMMAND_INVALID_NAME"),
        (command(name="x" * 33), "BASE_TYPE_BAD_LENGTH"),
        (command(description="d" * 101), "BASE_TYPE_BAD_LENGTH"),
        (command(description=""), "BASE_TYPE_REQUIRED"),
        (command(options=[option(name=f"o{i}") for i in range(26)]), "BASE_TYPE_MAX_LENGTH"),
        (command(options=[option(), option()]), "APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS"),
        (
            command(options=[option(name="a"), option(name="b", required=True)]),
            "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
        ),
        (
            command(options=[option(choices=[choice(str(i)) for i in range(26)])]),
            "BASE_TYPE_MAX_LENGTH",
        ),
        (command(options=[option(choices=[choice("x" * 101)])]), "BASE_TYPE_BAD_LENGTH"),
        (
            command(options=[option(choices=[choice("x"), choice("x")])]),
            "APPLICATION_COMMAND_OPTIONS_CHOICE_NAME_ALREADY_EXISTS",
        ),
        (
            command(options=[option(), option(type=1, name="s")]),
            "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID",
        ),
        (command(options=[NESTED]), "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID"),
        (command(options=LARGE), "APPLICATION_COMMAND_TOO_LARGE"),
        (
            command(type=3, name="Submit this file"),
            "APPLICATION_COMMAND_CONTEXT_MENU_DESCRIPTION",
        ),
    ],
)
async def test_a_command_is_refused_which(hand: ByHand, wrong: Json, code: str) -> None:
    answer = await hand("PUT", path(hand), [wrong])
    assert (answer.status, answer.code) == (400, 50035)
    assert code in answer.wrongs
    assert not hand.server.syncs


async def test_two_commands_of_a_name_are_refused(hand: ByHand) -> None:
    answer = await hand("PUT", path(hand), [command(), command()])
    assert "APPLICATION_COMMANDS_DUPLICATE_NAME" in answer.wrongs


async def test_a_scope_has_at_most_100_commands_and_15_of_each_menu(hand: ByHand) -> None:
    many = [command(name=f"c{i}") for i in range(101)]
    menus: list[Json] = [{"type": 3, "name": f"Menu {i}"} for i in range(16)]
    assert (await hand("PUT", path(hand), many)).code == 30032
    assert (await hand("PUT", path(hand), menus)).code == 30032
    assert (await hand("PUT", path(hand), many[:100] + menus[:15])).status == 200


async def test_an_overwrite_keeps_the_ids_of_what_stays_and_is_counted(hand: ByHand) -> None:
    await hand("PUT", path(hand), [command(name="a"), command(name="b")])
    before = {each["name"]: each["id"] for each in (await hand("GET", path(hand))).body}
    await hand("PUT", path(hand), [command(name="b")])
    (after,) = (await hand("GET", path(hand))).body
    assert after["id"] == before["b"]
    assert [sync.names for sync in hand.server.syncs] == [["a", "b"], ["b"]]
    assert {sync.scope for sync in hand.server.syncs} == {0}


async def test_commands_of_a_guild_are_offered_only_there(hand: ByHand) -> None:
    guild = hand.stage.guild.id
    base = f"/applications/{hand.server.world.bot.id}/guilds/{guild}/commands"
    one = (await hand("POST", base, command())).body
    other = hand.server.user("dora", hand.server.guild("another"))
    assert hand.stage.alice.commands() == ["c"]
    assert other.commands() == []
    changed = await hand("PATCH", f"{base}/{one['id']}", {"name": "renamed"})
    assert changed.body["id"] == one["id"]
    assert hand.stage.alice.commands() == ["renamed"]
    assert (await hand("DELETE", f"{base}/{one['id']}")).status == 204
    assert (await hand("GET", f"{base}/{one['id']}")).code == 10063
