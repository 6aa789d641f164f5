"""Reads a task zip from a form, without trust, and the requested settings of its board."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePath

from bot.domain.board import Access, SourceVisibility, Visibility
from bot.domain.errors import UserError
from bot.domain.pins import ALL, ANY, Pins, parse_pins
from bot.domain.publication import PublishRequest
from bot.domain.tasks.archive import MAX_PACKED
from bot.domain.times import parse_deadline
from bot.reports.blocks import Report
from bot.reports.tasks import found_report
from bot.services.publishing.request import TaskUpload, read_upload
from bot.web.forms import ROOM, Fields
from runners.contract.gpus import gpu_types

MOST = MAX_PACKED + ROOM
"""The most bytes of a form with a zip."""


@dataclass(frozen=True, slots=True)
class ShownUpload(TaskUpload):
    """An upload with a report of the zip's contents."""

    found: Report


async def upload_of(fields: Fields, request: PublishRequest) -> ShownUpload:
    """Return the task of a form's zip; UserError with file and line when it is invalid."""
    file = await fields.file("task_zip")
    if file is None:
        raise UserError("no-zip", "choose a task zip, as `podium task pack DIR` makes it")
    request = replace(request, zip_name=PurePath(file.name.replace("\\", "/")).stem[:100])
    bundle, parsed = await read_upload(file.content, request)
    found = await asyncio.to_thread(found_report, bundle, parsed)
    return ShownUpload(request, file.content, parsed.task, found)


def gpus_of_form(fields: Fields) -> tuple[str, ...]:
    """Return the GPU types that were ticked or typed."""
    written = fields.text("other_gpus").replace(",", " ").split()
    return gpu_types((*fields.texts("gpu"), *written))


def pins_of(fields: Fields) -> Pins:
    """Return the pools that were typed; every pool may time the others."""
    return ((ALL, ANY), *parse_pins((fields.text("pools"),)))


def deadline_of(fields: Fields) -> datetime | None:
    """Return the deadline that was typed; None when there is none."""
    text = fields.text("deadline")
    return parse_deadline(text) if text else None


def access_of(fields: Fields, present: Access) -> Access:
    """Return who may see the board and its sources; guild and guests stay."""
    visibility, source = fields.text("visibility"), fields.text("sources")
    return replace(
        present,
        visibility=Visibility(visibility) if visibility in set(Visibility) else present.visibility,
        source=SourceVisibility(source) if source in set(SourceVisibility) else present.source,
    )
