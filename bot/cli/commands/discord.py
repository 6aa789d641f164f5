"""`podium discord`: adds the bot to a server, and sets up everything that a first server needs."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.context import AsJson, CommandLine, DataFolder, actor_name, command_line, program
from bot.domain.errors import SetupError, UserError
from bot.domain.publication import PublishRequest
from bot.domain.tasks.task_file import parse_task
from bot.services.publishing.publish import publish

if TYPE_CHECKING:
    from bot.app.installation import Installation

GROUP = "Add the bot to a Discord server."
_POLL_S = 2.0
_LONGEST_LINE = 4096
_DELETED = (
    "no first message: #submissions was deleted and is not created again; allow a channel with "
    "`/admin channel-allow`"
)


def invite(
    ctx: typer.Context,
    *,
    application: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Discord application id (default: the application of DISCORD_TOKEN)",
            metavar="ID",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the link that adds the bot to a Discord server."""
    line = command_line(ctx)
    link = asyncio.run(line.installation.discord_invite(application))
    line.answer(link, {"invite": link}, as_json=as_json)


def setup(
    ctx: typer.Context,
    *,
    example: Annotated[
        str, typer.Option(help="Example task to publish as a first board", metavar="NAME")
    ] = "identity",
    gpu: Annotated[
        list[str] | None, typer.Option(help="GPU type of that board (default: CPU)", metavar="TYPE")
    ] = None,
    wait_s: Annotated[
        int, typer.Option("--wait", min=1, help="Seconds to wait for the invitation", metavar="S")
    ] = 600,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Ask for the bot's token, wait for its server, publish a board, post the first message."""
    line = command_line(ctx)
    installation = line.installation.at(data)
    if not installation.has_discord_token:
        path = installation.store_discord_token(_read_token())
        line.say(f"the token is stored in {path}, readable only by you")
    guild, missing = asyncio.run(_guild(line, installation, wait_s))
    board = asyncio.run(_publish(installation, example, tuple(gpu or ("CPU",))))
    line.say(f"board {board} is published")
    where = asyncio.run(installation.welcome_on_discord(guild, board))
    if missing:
        line.say(f"the bot lacks {', '.join(missing)}; {program()} doctor says what to do")
    posted = _DELETED if where is None else f"the first message is posted: {where}"
    words = f"{posted}\nnext: {program()} up"
    line.answer(words, {"guild": str(guild), "board": board, "message": where}, as_json=as_json)


def _read_token() -> str:
    """Return a token typed without echo, or read from a pipe; UserError if it is no token."""
    if sys.stdin.isatty():
        text = str(typer.prompt("Token of the bot (from its Bot page)", hide_input=True, err=True))
    else:
        text = sys.stdin.readline(_LONGEST_LINE)
    token = text.strip()
    if not token or any(each.isspace() for each in token):
        raise UserError("no-token", "this is no token; copy it from the application's Bot page")
    return token


async def _guild(
    line: CommandLine, installation: "Installation", wait_s: int
) -> tuple[int, tuple[str, ...]]:
    """Return the bot's first server and what it lacks there; print the link, and wait for one."""
    try:
        found = await installation.check_discord()
    except SetupError as error:
        installation.delete_discord_token()
        raise SetupError(f"{error}; run the command again") from error
    if not found.guilds:
        line.say(f"open this link, choose your server, and confirm: {found.invite}")
    try:
        async with asyncio.timeout(wait_s):
            while not found.guilds:
                await asyncio.sleep(_POLL_S)
                found = await installation.check_discord()
    except TimeoutError:
        raise UserError(
            "no-server", f"{found.bot} is in no server yet; run the command again once it is"
        ) from None
    line.say(f"{found.bot} is in {', '.join(each.name for each in found.guilds)}")
    return found.guilds[0].id, found.guilds[0].missing


async def _publish(installation: "Installation", example: str, gpus: tuple[str, ...]) -> str:
    """Publish an example task, whose solutions Podium's own tests have run; return its board."""
    task = parse_task(installation.read_task(installation.examples / example))
    async with installation.open() as podium:
        name = actor_name(None)
        person = await podium.store.people.ensure(f"local:{name}", name)
        request = PublishRequest(person.id, gpus=gpus)
        found = await podium.store.boards.find(task.name)
        if found is not None:
            return found.name
        published = await publish(podium.store, podium.clock, request, task, served=None)
        return published.board.name
