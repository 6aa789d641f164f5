"""What a person finds: commands in the help and where they belong, boards in pages."""

import shutil
from typing import Any

import pytest

from tests.architecture.tree import ROOT
from tests.doubles.discord.users.offers import offered
from tests.doubles.discord.wire import Json
from tests.doubles.dispatching import until
from tests.e2e.discord.scene import Scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres, pytest.mark.slow]

MANY = 14
TASK = ROOT / "tasks" / "examples" / "identity"


def _paths(command: dict[str, Any], before: str = "") -> list[str]:
    """A command with all the commands within it, as a person types them."""
    path = f"{before} {command['name']}".strip()
    options = command.get("options") or []
    inner = [each for each in options if each["type"] in {1, 2}]
    return [found for each in inner for found in _paths(each, path)] or [path]


async def test_every_command_is_in_the_help(stage: Scene) -> None:
    """Everything that an admin is offered is in one message; others see their own commands."""
    asked = await (await stage.carol.slash("leaderboard help")).final()
    commands = offered(stage.carol, stage.submissions)
    typed = [path for each in commands if each["type"] == 1 for path in _paths(each)]
    menus = [each["name"] for each in commands if each["type"] != 1]
    assert len(typed) > 40
    assert sorted(menus) == ["Moderate", "Submit this file"]
    told = asked.text
    assert "**Confirmation pending:** a run that would take" in told
    groups = {line.split("** ")[0].strip("*/"): line for line in told.splitlines() if "`" in line}
    paths = [path.rpartition(" ") for path in typed]
    missing = [(group, name) for group, _, name in paths if f"`{name}`" not in groups[group]]
    missing += [("", name) for name in menus if f"`{name}`" not in told]
    assert missing == []
    assert "Moderate" not in [each["name"] for each in offered(stage.alice, stage.submissions)]
    own = (await (await stage.alice.slash("leaderboard help")).final()).text
    assert "**/leaderboard** " in own
    assert "`create`" not in own
    assert "/admin" not in own
    stage.server.assert_clean()


async def test_every_command_and_option_says_what_it_is(stage: Scene) -> None:
    def check(command: dict[str, Any]) -> None:
        for option in command.get("options") or []:
            assert option["description"] not in {"", "…"}, option
            check(option)

    for command in offered(stage.carol, stage.submissions):
        if command["type"] == 1:
            assert command["description"] not in {"", "…"}
            check(command)


async def test_direct_messages_offer_what_is_of_use_there(stage: Scene) -> None:
    names = stage.alice.commands(stage.alice.dm)
    assert {"leaderboard", "submission", "profile", "Submit this file"} <= set(names)
    assert "admin" not in names
    assert "admin" in stage.carol.commands(stage.submissions)
    assert "admin" not in stage.alice.commands(stage.submissions)


async def test_the_boards_come_in_pages_with_deadline_and_crowd(stage: Scene) -> None:
    shutil.copytree(TASK, stage.podium.folder / TASK.name)
    shutil.copy(TASK.parent / "utils.py", stage.podium.folder)
    boards = "".join(
        f"  - {{directory: {TASK.name}, name: board-{number:02}, gpus: [CPU]}}\n"
        for number in range(MANY)
    )
    season = stage.podium.file("season.yaml", f"name: Season\nproblems:\n{boards}")
    published = stage.podium("task", "publish", season, "--unchecked")
    assert published.returncode == 0, published.stderr
    await (await stage.submit(stage.bob)).final()
    update = {"leaderboard_name": "board-00", "deadline": "2099-01-31 18:00"}
    await (await stage.carol.slash("leaderboard update", **update)).final()
    listed = await (await stage.alice.slash("leaderboard list")).final()
    assert "🟢 **board-00** on CPU, until <t:4073565600:F> (<t:4073565600:R>), nobody yet" in (
        listed.text
    )
    assert "board-10" not in listed.text
    await stage.alice.click(listed, "Next")
    await stage.server.wait_for(lambda: "board-10" in listed.text, 10)
    assert "**identity** on CPU, no deadline, 1 person" in listed.text
    assert listed.button("Next").disabled
    stage.server.assert_clean()


async def test_a_board_to_delete_is_chosen_from_a_menu(stage: Scene) -> None:
    none = await stage.alice.slash("leaderboard delete")
    assert none.message.text == "⚠️ There is no board that you may delete"
    asked = await stage.carol.slash("leaderboard delete")
    form = await stage.carol.select(asked.message.select("A board"), ["board-13"])
    await stage.carol.modal(form, {"The board's exact name": "board-13"})
    await stage.carol.sees("The board is deleted", within=10)
    listed = await (await stage.alice.slash("leaderboard list")).final()
    await stage.alice.click(listed, "Next")
    await stage.server.wait_for(lambda: "board-12" in listed.text, 10)
    assert "board-13" not in listed.text
    stage.server.assert_clean()


async def _offers(stage: Scene, count: int) -> list[Json]:
    """Wait as long as suggestions of a person's own data may be cached."""
    found: list[Json] = []

    async def known() -> bool:
        found[:] = await stage.alice.autocomplete("profile revoke", "id", "")
        return len(found) == count

    await until(known, within_s=10)
    return found


async def test_a_token_to_revoke_is_offered_by_its_number(stage: Scene) -> None:
    await (await stage.alice.slash("profile link", label="my laptop")).final()
    found = await _offers(stage, 1)
    (offer,) = found
    assert offer["name"].endswith(": my laptop")
    told = await (await stage.alice.slash("profile revoke", id=offer["value"])).final()
    assert "is revoked" in told.text
    await _offers(stage, 0)
    stage.server.assert_clean()
