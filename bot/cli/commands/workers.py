"""`podium up`, `worker` and `runners`: the processes that judge.

Until Ctrl-C, `up` runs everything in one process, and `worker` only judges the queue of a database
or of a remote server. `runners` lists the live workers, what they offer, and how busy they are.
"""

import asyncio
import gc
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.app.context import RemoteServer
from bot.cli import context
from bot.cli.follow import stop_signals
from bot.domain.errors import UserError
from bot.domain.job import Worker
from bot.reports.admin import workers_report
from runners.contract.runner import Capabilities

if TYPE_CHECKING:
    from bot.app.context import OpenDoor
    from bot.app.installation import Installation


def up(
    ctx: typer.Context,
    *,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="Port of the web server, 0 for any free one (default: PODIUM_HTTP_PORT)",
        ),
    ] = None,
    log_to_stderr: context.LogToStderr = False,
    data: context.DataFolder = None,
    as_json: context.AsJson = False,
) -> None:
    """Run Podium on this machine (database, web server, worker) until Ctrl-C."""
    line = context.command_line(ctx)
    installation = line.installation.at(data).on_port(port)
    asyncio.run(_serve(line, installation, log=log_to_stderr, as_json=as_json))


async def _serve(
    line: context.CommandLine, installation: "Installation", *, log: bool, as_json: bool
) -> None:
    with stop_signals() as stop:
        async with (
            installation.open(exclusive=True, log_to_stderr=log) as podium,
            installation.runners() as runners,
            installation.working(podium, runners),
            installation.doors(podium, runners) as doors,
            installation.ready(runners, doors) as offers,
        ):
            running = _RunningPodium(
                installation.data_dir,
                installation.examples,
                podium.database,
                offers,
                [board.name for board in await podium.store.boards.all()],
                doors,
            )
            _freeze_loaded_objects()
            sign_in_hint = [] if as_json else _sign_in_hint(line, doors)
            line.answer(
                "\n".join(running.start_message(sign_in_hint)), running.to_json(), as_json=as_json
            )
            await _wait_for(stop, line)
    line.say("stopped")


def _sign_in_hint(line: context.CommandLine, doors: Sequence["OpenDoor"]) -> list[str]:
    """Return how the user of this machine signs in; the link is printed only on a terminal."""
    pages = next((door for door in doors if door.name.startswith("web ")), None)
    if pages is None:
        return []
    with suppress(UserError):  # raised when this machine's user has no name
        if pages.link_for is not None and line.out.file.isatty():
            link = pages.link_for(context.actor_name(None))
            return [link, "signs you in as admin; works once, within ten minutes"]
    return [f"with a token: {context.program()} token create --person NAME --admin"]


def _freeze_loaded_objects() -> None:
    """Exclude all objects loaded so far from garbage collection.

    Otherwise each full collection delays all waiting requests by a tenth of a second.
    """
    gc.collect()
    gc.freeze()


@dataclass(frozen=True, slots=True)
class _RunningPodium:
    """The state of a running `podium up`."""

    data_dir: Path
    examples: Path
    database: str
    offers: Sequence[tuple[str, Capabilities]]
    boards: Sequence[str]
    doors: Sequence["OpenDoor"]

    def start_message(self, sign_in_hint: Sequence[str]) -> list[str]:
        """Return the lines that people see at the start."""
        podium = context.program()
        boards = ", ".join(self.boards) or f"none yet: {podium} task publish {self.examples}"
        marks = ["sign in", *[""] * len(sign_in_hint)]
        return [
            "Podium is up",
            f"  data      {self.data_dir.resolve()}",
            f"  database  {self.database}",
            *(f"  runner    {name}: {_slots(offer)}" for name, offer in self.offers),
            *(f"  serves    {_door_line(door)}" for door in self.doors),
            *(f"  {mark:<9} {words}" for mark, words in zip(marks, sign_in_hint, strict=False)),
            f"  boards    {boards}",
            f"  submit    {podium} submit FILE --leaderboard NAME",
            "  stop      Ctrl-C",
        ]

    def to_json(self) -> dict[str, object]:
        """Return what programs get at the start, as JSON."""
        slots: Counter[str] = Counter()
        for _, offer in self.offers:
            slots.update(offer.gpus)
        return {
            "database": self.database,
            "slots": dict(slots),
            "boards": self.boards,
            "doors": [door.name for door in self.doors],
        }


def _door_line(door: "OpenDoor") -> str:
    connected = door.connection is None or door.connection.is_connected
    return door.name if connected else f"{door.name}, not connected yet; see the log for the reason"


def _slots(offer: Capabilities) -> str:
    slots = ", ".join(f"{count} x {gpu}" for gpu, count in sorted(offer.gpus.items()))
    missing = ", ".join(offer.isolation.missing)
    return f"{slots}; sandbox {offer.isolation.outer}" + (f", without {missing}" if missing else "")


def worker(
    ctx: typer.Context,
    *,
    server: Annotated[
        str | None,
        typer.Option(
            help="Server to judge for, over HTTPS (default: PODIUM_SERVER)", metavar="URL"
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="Worker token; safer in PODIUM_WORKER_TOKEN, because `ps` shows options",
            metavar="T",
        ),
    ] = None,
    plain_http: context.PlainHttp = False,
    log_to_stderr: context.LogToStderr = False,
    data: context.DataFolder = None,
    as_json: context.AsJson = False,
) -> None:
    """Judge queued jobs of a server, of DATABASE_URL, or of the data folder."""
    line = context.command_line(ctx)
    installation = line.installation.at(data)
    if installation.judges_elsewhere(server):
        remote = RemoteServer(server, token, plain_http)
        work = _work_for_server(line, installation, remote, log=log_to_stderr, as_json=as_json)
    elif token is not None:
        raise UserError("no-server", "a token needs a server; set --server URL or PODIUM_SERVER")
    else:
        work = _work(line, installation, log=log_to_stderr, as_json=as_json)
    asyncio.run(work)


async def _work(
    line: context.CommandLine, installation: "Installation", *, log: bool, as_json: bool
) -> None:
    with stop_signals() as stop:
        async with (
            installation.open(log_to_stderr=log) as podium,
            installation.runners() as runners,
            installation.working(podium, runners),
            installation.ready(runners),
        ):
            words = f"working on {podium.database}; Ctrl-C stops"
            line.answer(words, {"database": podium.database}, as_json=as_json)
            await _wait_for(stop, line)
    line.say("stopped")


async def _work_for_server(
    line: context.CommandLine,
    installation: "Installation",
    remote: RemoteServer,
    *,
    log: bool,
    as_json: bool,
) -> None:
    with stop_signals() as stop:
        async with (
            installation.runners() as runners,
            installation.working_for(remote, runners, log_to_stderr=log) as name,
            installation.ready(runners),
        ):
            words = f"working as {name}; Ctrl-C stops"
            line.answer(words, {"worker": name}, as_json=as_json)
            await _wait_for(stop, line)
    line.say("stopped")


async def _wait_for(stop: asyncio.Event, line: context.CommandLine) -> None:
    await stop.wait()
    line.say("stopping: running jobs finish, queued jobs stay queued")


def runners(
    ctx: typer.Context,
    *,
    data: context.DataFolder = None,
    server: context.ServerUrl = None,
    as_json: context.AsJson = False,
) -> None:
    """List connected workers and their GPUs."""
    asyncio.run(_runners(context.command_line(ctx), context.Where(data, server), as_json=as_json))


async def _runners(line: context.CommandLine, where: context.Where, *, as_json: bool) -> None:
    async with line.client_for_viewer(where) as client:
        found, now = await client.workers()
    body = [_worker_json(each) for each in found]
    line.answer(workers_report(found, now), body, as_json=as_json)


def _worker_json(worker: Worker) -> dict[str, object]:
    return {
        "name": worker.name,
        "running": worker.running,
        "seen_at": None if worker.seen_at is None else worker.seen_at.isoformat(),
        "gpus": worker.gpus,
        "runners": {
            name: {
                "slots": offer.gpus,
                "harness_version": offer.harness_version,
                "out_of_service": [each.model_dump(mode="json") for each in offer.out_of_service],
                "isolation": offer.isolation.model_dump(mode="json"),
            }
            for name, offer in worker.offers.items()
        },
    }
