"""`podium worker`: judges the queue of a database or of a remote server, until Ctrl-C."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from bot.app.context import RemoteServer
from bot.cli.context import AsJson, CommandLine, DataFolder, LogToStderr, command_line
from bot.cli.follow import stop_signals
from bot.cli.json_output import dumps
from bot.domain.errors import UserError

if TYPE_CHECKING:
    from bot.app.installation import Installation


def worker(
    ctx: typer.Context,
    *,
    server: Annotated[
        str | None,
        typer.Option(
            help="Server to judge for, over HTTPS (default: PODIUM_SERVER)",
            metavar="URL",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="Worker token; safer in PODIUM_WORKER_TOKEN, because `ps` shows options",
            metavar="T",
        ),
    ] = None,
    plain_http: Annotated[
        bool,
        typer.Option(
            "--plain-http",
            help="Allow unencrypted http:// to another machine; the token can be intercepted",
        ),
    ] = False,
    log_to_stderr: LogToStderr = False,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Judge queued jobs of a server, of DATABASE_URL, or of the data folder."""
    line = command_line(ctx)
    installation = line.installation.at(data)
    if installation.judges_elsewhere(server):
        elsewhere = RemoteServer(server, token, plain_http)
        work = _work_for(line, installation, elsewhere, log=log_to_stderr, as_json=as_json)
    elif token is not None:
        raise UserError("no-server", "a token needs a server; set --server URL or PODIUM_SERVER")
    else:
        work = _work(line, installation, log=log_to_stderr, as_json=as_json)
    asyncio.run(work)


async def _work(
    line: CommandLine, installation: "Installation", *, log: bool, as_json: bool
) -> None:
    with stop_signals() as stop:
        async with (
            installation.open(log_to_stderr=log) as podium,
            installation.runners() as runners,
            installation.working(podium, runners),
            installation.ready(runners),
        ):
            shape = {"database": podium.database}
            await _until(stop, line, f"working on {podium.database}", shape if as_json else None)
    line.say("stopped")


async def _work_for(
    line: CommandLine,
    installation: "Installation",
    elsewhere: RemoteServer,
    *,
    log: bool,
    as_json: bool,
) -> None:
    with stop_signals() as stop:
        async with (
            installation.runners() as runners,
            installation.working_for(elsewhere, runners, log_to_stderr=log) as name,
            installation.ready(runners),
        ):
            await _until(stop, line, f"working as {name}", {"worker": name} if as_json else None)
    line.say("stopped")


async def _until(
    stop: asyncio.Event, line: CommandLine, words: str, shape: dict[str, str] | None
) -> None:
    told = f"{words}; Ctrl-C stops" if shape is None else dumps(shape)
    line.out.out(told, highlight=False)
    await stop.wait()
    line.say("stopping: running jobs finish, queued jobs stay queued")
