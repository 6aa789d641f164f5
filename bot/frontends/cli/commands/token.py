"""`podium token`: lets machines judge from elsewhere, and ends that."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from bot.domain.token import Token
from bot.frontends.cli.context import (
    Actor,
    AsJson,
    CommandLine,
    DataFolder,
    acting,
    command_line,
)
from bot.frontends.cli.draw import draw
from bot.frontends.cli.shapes import dumps
from bot.reports.tokens import worker_tokens_report
from bot.services.worker_tokens import MOST_DAYS, issue, revoke, worker_tokens


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Tokens of machines that judge from elsewhere.", no_args_is_help=True)
    group.command()(create)
    group.command(name="list")(list_)
    group.command(name="revoke")(end)
    app.add_typer(group, name="token")


def create(
    ctx: typer.Context,
    *,
    worker: Annotated[
        str, typer.Option(help="The machine's name, such as gpu-box-1", metavar="NAME")
    ],
    days: Annotated[
        int, typer.Option(min=1, max=MOST_DAYS, help="After how many days it ends")
    ] = 90,
    data: DataFolder = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Make a token with which a machine may judge; it is shown this once."""
    line = command_line(ctx)
    asyncio.run(_create(line, data, actor, worker, lifetime=timedelta(days=days), as_json=as_json))


def list_(ctx: typer.Context, *, data: DataFolder = None, as_json: AsJson = False) -> None:
    """The machines that have a token, and until when."""
    asyncio.run(_list(command_line(ctx), data, as_json=as_json))


def end(
    ctx: typer.Context,
    worker: Annotated[str, typer.Argument(help="The machine's name", metavar="NAME")],
    *,
    data: DataFolder = None,
    actor: Actor = None,
) -> None:
    """End a machine's token: from its next word on it is refused."""
    asyncio.run(_revoke(command_line(ctx), data, actor, worker))


async def _create(
    line: CommandLine,
    data: Path | None,
    actor: str | None,
    worker: str,
    *,
    lifetime: timedelta,
    as_json: bool,
) -> None:
    async with acting(line, data, actor) as (podium, person):
        made = await issue(podium.store, podium.clock, person.id, worker, lifetime=lifetime)
    if as_json:
        line.out.out(dumps({**_shape(made.token), "token": made.secret}), highlight=False)
        return
    line.out.out(made.secret, highlight=False)
    line.say(
        f"shown this once; on the machine: PODIUM_WORKER_TOKEN=... podium worker --server URL, "
        f"until {_until(made.token)}"
    )


async def _list(line: CommandLine, data: Path | None, *, as_json: bool) -> None:
    async with line.installation.at(data).open() as podium:
        found = await worker_tokens(podium.store)
        now = podium.clock.now()
    if as_json:
        line.out.out(dumps([_shape(each) for each in found]), highlight=False)
    else:
        draw(worker_tokens_report(found, now), line.out)


async def _revoke(line: CommandLine, data: Path | None, actor: str | None, worker: str) -> None:
    async with acting(line, data, actor) as (podium, person):
        await revoke(podium.store, person.id, worker)
    line.out.out(f"the token of worker {worker} is ended", highlight=False)


def _shape(token: Token) -> dict[str, object]:
    return {
        "worker": token.label,
        "created_at": token.created_at.isoformat(),
        "expires_at": None if token.expires_at is None else token.expires_at.isoformat(),
    }


def _until(token: Token) -> str:
    return "it is revoked" if token.expires_at is None else f"{token.expires_at:%Y-%m-%d}"
