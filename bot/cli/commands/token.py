"""`podium token`: creates and revokes tokens for people and for remote workers."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.context import Actor, AsJson, CommandLine, DataFolder, command_line
from bot.cli.json_output import Json
from bot.domain.accounts import Token, TokenScope
from bot.domain.errors import UserError
from bot.domain.ids import TokenId
from bot.reports.admin import personal_tokens_report, worker_tokens_report
from bot.services import worker_tokens
from bot.services.tokens import create_local_token, list_tokens, revoke_access

GROUP = "Manage the tokens of people and workers."

PersonName = Annotated[
    str | None,
    typer.Option(
        help="Account: a local name such as ada, or an id such as discord:17", metavar="NAME"
    ),
]


@dataclass(frozen=True, slots=True)
class _TokenOptions:
    """The owner's name, and the scope and lifetime of a new token; a worker's has scope WORKER."""

    name: str
    scope: TokenScope
    lifetime: timedelta


def create(
    ctx: typer.Context,
    *,
    worker: Annotated[
        str | None, typer.Option(help="Worker name, such as gpu-box-1", metavar="NAME")
    ] = None,
    person: PersonName = None,
    admin: Annotated[bool, typer.Option("--admin", help="Grant admin rights")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Read-only token")] = False,
    days: Annotated[
        int, typer.Option(min=1, max=worker_tokens.MOST_DAYS, help="Lifetime in days")
    ] = 90,
    data: DataFolder = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Create a token for a person or a remote worker; it is shown only once."""
    scope = _scope(worker, person, admin=admin, read_only=read_only)
    options = _TokenOptions(worker or person or "", scope, timedelta(days=days))
    asyncio.run(_create(command_line(ctx), data, actor, options, as_json=as_json))


def _scope(worker: str | None, person: str | None, *, admin: bool, read_only: bool) -> TokenScope:
    if (worker is None) == (person is None):
        raise UserError(
            "usage", "name the owner: --person NAME, or --worker NAME for a remote worker"
        )
    if admin and read_only:
        raise UserError("usage", "use --admin or --read-only, not both")
    if worker is not None and (admin or read_only):
        raise UserError("usage", "--admin and --read-only need --person")
    if worker is not None:
        return TokenScope.WORKER
    if admin:
        return TokenScope.ADMIN
    return TokenScope.READ if read_only else TokenScope.PERSON


def list_(
    ctx: typer.Context,
    *,
    person: PersonName = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """List the workers' tokens; with --person, that person's tokens."""
    asyncio.run(_list(command_line(ctx), data, person, as_json=as_json))


def revoke_(
    ctx: typer.Context,
    worker: Annotated[str | None, typer.Argument(help="Worker name", metavar="[NAME]")] = None,
    *,
    person: PersonName = None,
    token: Annotated[
        int | None, typer.Option(help="Revoke only this token of the person", metavar="NUMBER")
    ] = None,
    data: DataFolder = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a worker's token, or with --person a person's tokens and admin rights."""
    if (worker is None) == (person is None) or (token is not None and person is None):
        raise UserError(
            "usage", "name the owner: a worker's NAME, or --person NAME [--token NUMBER]"
        )
    number = None if token is None else TokenId(token)
    line = command_line(ctx)
    if person is not None:
        words, body = asyncio.run(_revoke_access(line, data, actor, person, token=number))
    else:
        words, body = asyncio.run(_revoke(line, data, actor, worker or ""))
    line.answer(words, body, as_json=as_json)


async def _create(
    line: CommandLine,
    data: Path | None,
    actor: str | None,
    options: _TokenOptions,
    *,
    as_json: bool,
) -> None:
    name, scope, lifetime = options.name, options.scope, options.lifetime
    async with line.open_as_person(data, actor) as (podium, acting):
        store, clock = podium.store, podium.clock
        if scope is TokenScope.WORKER:
            made = await worker_tokens.create_worker_token(
                store, clock, acting.id, name, lifetime=lifetime
            )
        else:
            made = await create_local_token(
                store, clock, acting.id, name, scope=scope, lifetime=lifetime
            )
    body = {**_token_json(made.token), "token": made.secret}
    line.answer(made.secret, body, as_json=as_json)
    if as_json:
        return
    use = (
        "on the worker's machine, run PODIUM_WORKER_TOKEN=... podium worker --server URL"
        if made.token.is_worker_token
        else "sign in with it in the browser, or send it as Authorization: Bearer TOKEN"
    )
    line.say(f"shown only once; {use}; valid until {_until(made.token)}")


async def _list(line: CommandLine, data: Path | None, person: str | None, *, as_json: bool) -> None:
    async with line.installation.at(data).open() as podium:
        now = podium.clock.now()
        if person is None:
            found = await worker_tokens.worker_tokens(podium.store)
            report = worker_tokens_report(found, now)
        else:
            found = await list_tokens(podium.store, person)
            report = personal_tokens_report(found, now)
    line.answer(report, [_token_json(each) for each in found], as_json=as_json)


async def _revoke(
    line: CommandLine, data: Path | None, actor: str | None, worker: str
) -> tuple[str, Json]:
    async with line.open_as_person(data, actor) as (podium, person):
        await worker_tokens.revoke_worker_token(podium.store, person.id, worker)
    return f"the token of worker {worker} is revoked", {"worker": worker, "tokens": 1}


async def _revoke_access(
    line: CommandLine, data: Path | None, actor: str | None, name: str, *, token: TokenId | None
) -> tuple[str, Json]:
    async with line.open_as_person(data, actor) as (podium, acting):
        revoked = await revoke_access(podium.store, acting.id, name, token)
    words = f"{revoked} {'token' if revoked == 1 else 'tokens'} of {name} revoked"
    return words, {"person": name, "tokens": revoked}


def _token_json(token: Token) -> Json:
    whose = (
        {"worker": token.label}
        if token.is_worker_token
        else {"id": token.id, "scope": token.scope.word}
    )
    return {
        **whose,
        "created_at": token.created_at.isoformat(),
        "expires_at": None if token.expires_at is None else token.expires_at.isoformat(),
    }


def _until(token: Token) -> str:
    return "it is revoked" if token.expires_at is None else f"{token.expires_at:%Y-%m-%d}"
