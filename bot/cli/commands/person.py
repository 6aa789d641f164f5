"""`podium person`: an admin's decisions about people."""

import asyncio
from typing import Annotated

import typer

from bot.cli.context import Actor, AsJson, DataFolder, command_line
from bot.domain.costs import MOST_QUOTA, Quota, QuotaKey, Unit
from bot.domain.errors import UserError
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


_Person = Annotated[str, typer.Argument(help="Account, such as discord:17", metavar="PERSON")]
_Gpu = Annotated[str | None, typer.Option("--gpu", help="Only on this GPU type")]


def limit(
    ctx: typer.Context,
    person: _Person,
    *,
    reason: Annotated[str, typer.Option(help="Reason, shown to the person")],
    gpu_seconds: Annotated[
        float | None, typer.Option(min=0.01, max=MOST_QUOTA, help="GPU seconds a day (UTC)")
    ] = None,
    dollars: Annotated[
        float | None, typer.Option(min=0.01, max=MOST_QUOTA, help="Dollars a day (UTC)")
    ] = None,
    gpu: _Gpu = None,
    data: DataFolder = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Limit one person's GPU time, or the money that it costs, a day."""
    amount = dollars if gpu_seconds is None else gpu_seconds
    if amount is None or (gpu_seconds is not None and dollars is not None):
        raise UserError("usage", "give either --gpu-seconds or --dollars")
    unit = Unit.DOLLARS if gpu_seconds is None else Unit.SECONDS
    wanted = Quota(QuotaKey(unit, gpu=gpu), amount)

    async def run() -> Quota:
        async with command_line(ctx).open_as_person(data, actor) as (podium, acting):
            decision = moderation.Decision(acting.id, reason)
            return await moderation.set_quota(podium.store, decision, wanted, person)

    stored = asyncio.run(run())
    body = {"person": person, "unit": unit, "most": amount, "gpu": stored.key.gpu}
    command_line(ctx).answer(f"GPU time is limited: {stored.words}", body, as_json=as_json)


def unlimit(
    ctx: typer.Context,
    person: _Person,
    *,
    money: Annotated[bool, typer.Option("--dollars", help="Remove the limit of money")] = False,
    gpu: _Gpu = None,
    reason: Annotated[str, typer.Option(help="Reason, kept in the audit log")] = "",
    data: DataFolder = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Remove the limit of one person's GPU seconds, or of their money."""
    key = QuotaKey(Unit.DOLLARS if money else Unit.SECONDS, gpu=gpu)

    async def run() -> None:
        async with command_line(ctx).open_as_person(data, actor) as (podium, acting):
            decision = moderation.Decision(acting.id, reason)
            await moderation.drop_quota(podium.store, decision, key, person)

    asyncio.run(run())
    body = {"person": person, "unit": key.unit, "gpu": gpu}
    command_line(ctx).answer("the limit is removed", body, as_json=as_json)
