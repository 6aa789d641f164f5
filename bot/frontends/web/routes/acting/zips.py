"""A task zip as it comes with a form: read without trust, and what is wanted of its board."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePath

from bot.domain.access import Access, SourceVisibility, Visibility
from bot.domain.archive import MAX_PACKED
from bot.domain.deadline import parse_deadline
from bot.domain.errors import UserError
from bot.domain.pins import ALL, ANY, Pins, parse_pins
from bot.domain.requirements import has_device
from bot.frontends.web.door import Door
from bot.frontends.web.forms import ROOM, Fields
from bot.reports.blocks import Report
from bot.reports.task_found import found_report
from bot.services.offered import offered_gpus
from bot.services.publish import PublishRequest
from bot.services.wishes import Wish, read
from runners.contract.gpus import gpu_types
from runners.contract.task import TaskDefinition

MOST = MAX_PACKED + ROOM
"""Bytes of a form with a zip."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A wish with the zip that came for it, and what was read in it."""

    wish: Wish
    zip: bytes
    task: TaskDefinition
    found: Report

    @property
    def request(self) -> PublishRequest:
        """What is to be published."""
        return self.wish.request(self.task)


async def plan_of(fields: Fields, wish: Wish) -> Plan:
    """The task of a form's zip; UserError with file and line when it is not one."""
    file = await fields.file("task_zip")
    if file is None:
        raise UserError("no-zip", "choose a task zip, as `podium task pack DIR` makes it")
    wish = replace(wish, zip_name=PurePath(file.name.replace("\\", "/")).stem[:100])
    bundle, parsed = await read(file.content, wish)
    found = await asyncio.to_thread(found_report, bundle, parsed)
    return Plan(wish, file.content, parsed.task, found)


def gpus_of_form(fields: Fields) -> tuple[str, ...]:
    """The GPU types that were ticked, and those that were written beside them."""
    written = fields.text("other_gpus").replace(",", " ").split()
    return gpu_types((*fields.texts("gpu"), *written))


async def offered_for(door: Door, task: TaskDefinition) -> tuple[str, ...]:
    """The GPU types that a board of this task can be for, as far as there are places to judge."""
    offered = await offered_gpus(door.store, door.runners) | set(gpu_types(task.gpus))
    return tuple(sorted(gpu for gpu in offered if has_device(task, gpu)))


def pins_of(fields: Fields) -> Pins:
    """The pools that were written; what is not written may be timed by every pool."""
    return ((ALL, ANY), *parse_pins((fields.text("pools"),)))


def deadline_of(fields: Fields) -> datetime | None:
    """The deadline that was written; None when none was."""
    text = fields.text("deadline")
    return parse_deadline(text) if text else None


def access_of(fields: Fields, present: Access) -> Access:
    """Who may see the board and its sources, as it was ticked; house and guests stay."""
    visibility, source = fields.text("visibility"), fields.text("sources")
    return replace(
        present,
        visibility=Visibility(visibility) if visibility in set(Visibility) else present.visibility,
        source=SourceVisibility(source) if source in set(SourceVisibility) else present.source,
    )
