"""Reads the competition in an uploaded zip, and stores competitions with their published boards."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pydantic import Base64Bytes

from bot.domain.board import Viewer
from bot.domain.competition import Competition, NewCompetition
from bot.domain.errors import UserError
from bot.domain.publication import Draft, PublishChange, PublishedDraft, PublishRequest
from bot.domain.tasks import competition_zip
from bot.domain.tasks.bundle import read_files
from bot.domain.tasks.competition import CompetitionDefinition
from bot.domain.tasks.competition_zip import ParsedCompetition
from bot.ports import Clock, Store
from bot.services.publishing.publish import TASKS


async def read_competition(
    data: bytes, request: PublishRequest
) -> tuple[tuple[Draft, ...], tuple[str, ...]]:
    """Return a draft of each board in a zip, and what was ignored; UserError with file and line."""
    parsed = await TASKS.call(competition_in, data)
    bundles = parsed.bundles(await asyncio.to_thread(read_files, data))
    definition = parsed.definition
    drafts = tuple(
        Draft(bundle, each.task, request.of_entry(entry), definition)
        for bundle, each, entry in zip(bundles, parsed.tasks, definition.problems, strict=True)
    )
    return drafts, parsed.warnings


def competition_in(data: Base64Bytes) -> ParsedCompetition:
    """Return the competition in a zip; only called in its own process."""
    return competition_zip.read_competition(data)


async def validate_competition(store: Store, draft: Draft) -> None:
    """UserError when the draft's competition has the name of another person's."""
    if draft.competition is None:
        return
    existing = await store.competitions.find(draft.competition.name)
    viewer = Viewer(draft.request.person, sees_all=draft.request.as_admin)
    if existing is not None and not existing.belongs_to(viewer):
        raise UserError(
            "not-yours",
            f"competition {existing.name!r} belongs to another person; choose another name",
        )


async def store_competitions(
    tx: Store, clock: Clock, drafts: Sequence[Draft], published: Sequence[PublishedDraft]
) -> None:
    """Store each competition of the drafts with its boards, in the caller's transaction."""
    boards: dict[str, list[PublishedDraft]] = {}
    first: dict[str, tuple[Draft, CompetitionDefinition]] = {}
    for draft, done in zip(drafts, published, strict=True):
        if draft.competition is not None:
            boards.setdefault(draft.competition.name, []).append(done)
            first.setdefault(draft.competition.name, (draft, draft.competition))
    for name, (draft, definition) in first.items():
        await validate_competition(tx, draft)
        existing = await tx.competitions.find(name)
        new = NewCompetition(
            name,
            draft.request.person,
            definition.description,
            definition.points,
            _opens_at(definition, existing, clock.now()),
            tuple(each.published.board.id for each in boards[name]),
        )
        if existing is None or _differs(new, existing):
            await tx.competitions.put(new)
            change = PublishChange.CREATED if existing is None else PublishChange.CONFIGURED
            subject, count = f"competition {name}", len(new.boards)
            reason = f"{count} board{'' if count == 1 else 's'}"
            await tx.audit.record(draft.request.person, f"publish-{change}", subject, reason)


def _opens_at(
    definition: CompetitionDefinition, existing: Competition | None, now: datetime
) -> datetime:
    """Return the opening date: without one in the file, the competition opens now if not before."""
    if definition.opens_at is not None:
        return definition.opens_at
    return existing.opens_at if existing is not None and existing.has_opened(now) else now


def _differs(new: NewCompetition, existing: Competition) -> bool:
    boards = tuple(each.id for each in existing.boards)
    present = NewCompetition(
        existing.name, existing.creator, existing.description, existing.points, existing.opens_at,
        boards,
    )  # fmt: skip
    return replace(new, creator=existing.creator) != present
