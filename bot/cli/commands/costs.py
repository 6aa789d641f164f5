"""`podium costs`: who used how much GPU time, and what it cost."""

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from bot.cli.context import Actor, AsJson, CommandLine, DataFolder, ServerUrl, Where, command_line
from bot.domain.costs import MOST_DAYS, cost
from bot.reports.costs import costs_report


def costs(
    ctx: typer.Context,
    *,
    days: Annotated[
        int, typer.Option(min=1, max=MOST_DAYS, help="How many days (UTC), with today")
    ] = 1,
    actor: Actor = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show who used how much GPU time and what it cost, for admins."""
    where = Where(data, server, actor)
    asyncio.run(_costs(command_line(ctx), where, days, as_json=as_json))


async def _costs(line: CommandLine, where: Where, days: int, *, as_json: bool) -> None:
    async with line.client_for_person(where) as client:
        found = await client.costs(days)
    usage = [
        {
            **asdict(each),
            "day": each.day.isoformat(),
            "cost": cost(found.prices, each.gpu, each.seconds),
        }
        for each in found.usage
    ]
    line.answer(costs_report(found), {"days": days, "usage": usage}, as_json=as_json)
