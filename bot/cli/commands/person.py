"""`podium person`: an admin's decisions about people."""

import asyncio
from typing import Annotated

import typer

from bot.cli.context import Actor, AsJson, DataFolder, command_line
from bot.services import moderation

GROUP = "Moderate people."


def reset_name(
    ctx: typer.Context,
    person: Annotated[str, typer.Argument(help="Account, such as discord:17", metavar="PERSON")],
    *,
    reason: Annotated[str, typer.Option(help="Reason, shown to the person")],
    data: DataFolder = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Show a person by their user name until they choose another name."""

    async def run() -> tuple[str, str]:
        async with command_line(ctx).open_as_person(data, actor) as (podium, acting):
            decision = moderation.Decision(acting.id, reason)
            found = await moderation.reset_name(podium.store, decision, person)
        return found.name, found.handle

    before, now = asyncio.run(run())
    words = f"the name {before} is reset; boards show {now}"
    body = {"person": person, "before": before, "name": now}
    command_line(ctx).answer(words, body, as_json=as_json)
