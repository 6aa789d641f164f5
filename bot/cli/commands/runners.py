"""`podium runners`: the live workers, what they offer, and how busy they are."""

import asyncio

import typer

from bot.cli.context import (
    AsJson,
    CommandLine,
    DataFolder,
    ServerUrl,
    Where,
    client_for_viewer,
    command_line,
)
from bot.cli.draw import draw
from bot.cli.json_output import dumps
from bot.domain.job import Worker
from bot.reports.admin import workers_report


def runners(
    ctx: typer.Context,
    *,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """List connected workers and their GPUs."""
    asyncio.run(_show(command_line(ctx), Where(data, server), as_json=as_json))


async def _show(line: CommandLine, where: Where, *, as_json: bool) -> None:
    async with client_for_viewer(line, where) as client:
        found, now = await client.workers()
    if as_json:
        line.out.out(dumps([_shape(each) for each in found]), highlight=False)
    else:
        draw(workers_report(found, now), line.out)


def _shape(worker: Worker) -> dict[str, object]:
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
