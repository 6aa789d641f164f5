"""Decisions of admins and owners about people and submissions."""

import secrets
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.domain.accounts import Person
from bot.domain.board import Board, Viewer
from bot.domain.costs import Quota, QuotaKey
from bot.domain.errors import UserError, unknown_name
from bot.domain.ids import BoardId, PersonId, SubmissionId
from bot.domain.notifications import name_notification
from bot.domain.status import SubmissionStatus, admin_cancel_words
from bot.domain.submission import Ban, Exclusion, ExclusionKind, RateLimit
from bot.ports import Clock, Store
from bot.services.audit import audited
from bot.services.contests import exclude, include
from bot.services.lookup import find_submission, own_submission
from bot.services.status import Source, read_submission, stored_source
from runners.contract.gpus import find_gpu_type
from runners.contract.task import Mode

LONGEST_NOTE = 4_000
"""The most characters of an author's note about a submission."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The person who decides, and the reason, which the person concerned sees."""

    actor: PersonId
    reason: str


async def ban(
    store: Store, decision: Decision, identity: str, until: datetime | None = None
) -> int:
    """Keep a person from submitting; cancel their unfinished submissions and return how many.

    Their checks of tasks are cancelled too. The ban ends by itself at `until`.

    UserError when no person has this identity, and for one's own account.
    """
    person = await _other_person(store, decision, identity)
    ban = Ban(decision.reason, until)
    noted = replace(decision, reason=ban.words)
    async with _audited(store, noted, "ban", f"person {identity}") as tx:
        await tx.moderation.ban(person, ban)
        unfinished = await tx.jobs.unfinished_of(person)
        why = f"because its submitter is banned ({decision.reason})"
        await tx.publications.cancel(person, why)
    for submission in unfinished:  # one by one: thousands of locks would make workers wait
        await store.jobs.request_cancel(submission, admin_cancel_words(decision.reason))
    return len(unfinished)


async def unban(store: Store, decision: Decision, identity: str) -> None:
    """Let a person submit again."""
    person = await _person_id(store, identity)
    async with _audited(store, decision, "unban", f"person {identity}") as tx:
        if not await tx.moderation.unban(person):
            raise UserError("not-banned", "this person is not banned")


async def reset_name(store: Store, decision: Decision, identity: str) -> Person:
    """Replace a person's name with their user name, and notify them; return the old `Person`.

    They can choose any other name that does not look like the old one. UserError if the name is the
    user name already, or if it has changed in the meantime.
    """
    person = await _find_person(store, identity)
    if not person.handle:
        raise UserError("no-handle", "Podium knows no user name of this person to show instead")
    if not person.name_can_be_reset:
        raise UserError("same-name", f"this person is already shown as {person.name}")
    noted = replace(decision, reason=f"{person.name}: {decision.reason}")
    async with _audited(store, noted, "reset-name", f"person {identity}") as tx:
        if await tx.people.reset_name(person) is None:
            raise UserError("stale-match", "this person has just changed their name; try again")
        await tx.outbox.put([name_notification(person, decision.reason, secrets.token_hex(8))])
    return person


@dataclass(frozen=True, slots=True)
class LookedAt:
    """A submission as an admin sees it, and its owner."""

    status: SubmissionStatus
    source: Source
    person: Person | None


async def look(
    store: Store, clock: Clock, decision: Decision, submission: SubmissionId
) -> LookedAt:
    """Return anyone's report and source to an admin; recorded in the audit log."""
    viewer = Viewer(decision.actor, sees_all=True)
    status = await read_submission(store, clock, viewer, submission)
    found = await stored_source(store, status.submission)
    if status.submission.person != decision.actor:
        async with store.transaction() as tx:
            subject = f"submission {submission}"
            await tx.audit.record(decision.actor, "look", subject, decision.reason)
    return LookedAt(status, found, await store.people.get(status.submission.person))


async def cancel(store: Store, decision: Decision, submission: SubmissionId) -> int:
    """Cancel every unfinished job of anyone's submission; return how many there were.

    Its owner reads that an admin has cancelled it, with the reason if there is one.
    """
    found = await find_submission(store, submission)
    why = None if found.person == decision.actor else admin_cancel_words(decision.reason)
    async with store.transaction() as tx:
        stopped = await tx.jobs.request_cancel(submission, why)
        if stopped:
            subject = f"submission {submission}"
            await tx.audit.record(decision.actor, "cancel", subject, decision.reason)
    return stopped


async def disqualify(store: Store, decision: Decision, submission: SubmissionId) -> None:
    """Take any person's submission off its board; its result stays."""
    await _exclude(store, decision, submission, ExclusionKind.DISQUALIFIED)


async def withdraw(store: Store, viewer: Viewer, reason: str, submission: SubmissionId) -> None:
    """Take the viewer's own submission off its board permanently; its result stays."""
    await own_submission(store, viewer, submission)
    if await store.moderation.exclusion_of(submission) is not None:
        raise UserError(
            "off-board", f"submission {submission} was already removed from its leaderboard"
        )
    decision = Decision(viewer.person, reason)
    await _exclude(store, decision, submission, ExclusionKind.WITHDRAWN)


async def write_note(store: Store, viewer: Viewer, number: SubmissionId, text: str) -> None:
    """Store the viewer's note about their own submission; an empty one removes it.

    An admin may remove anyone's note, which is recorded in the audit log.
    """
    note = text.replace("\r\n", "\n").strip()
    if viewer.sees_all and not note:
        decision = Decision(viewer.person, "")
        async with _audited(store, decision, "remove-note", f"submission {number}") as tx:
            await tx.submissions.write_note(number, "")
        return
    await own_submission(store, viewer, number)
    if len(note) > LONGEST_NOTE:
        raise UserError("too-large", f"a note has at most {LONGEST_NOTE} characters")
    if ban := await store.moderation.ban_of(viewer.person):
        raise ban.refusal
    await store.submissions.write_note(number, note)


async def requalify(store: Store, decision: Decision, submission: SubmissionId) -> None:
    """Rank a submission again after it was taken off its board."""
    async with _audited(store, decision, "requalify", f"submission {submission}") as tx:
        if not await include(tx, submission):
            raise UserError(
                "on-board", f"submission {submission} was not removed from its leaderboard"
            )


async def pause(store: Store, decision: Decision) -> None:
    """Accept no more submissions; stored ones are still judged."""
    async with _audited(store, decision, "pause", "submissions") as tx:
        await tx.moderation.pause(decision.reason)


async def resume(store: Store, decision: Decision) -> None:
    """Accept submissions again."""
    async with _audited(store, decision, "resume", "submissions") as tx:
        if not await tx.moderation.resume():
            raise UserError("not-paused", "submissions are not paused")


async def pause_board(store: Store, decision: Decision, board: Board) -> None:
    """Accept no more submissions to one board; stored ones are still judged."""
    async with _audited(store, decision, "pause", f"board {board.name}") as tx:
        await tx.moderation.pause_board(board.id, decision.reason)


async def resume_board(store: Store, decision: Decision, board: Board) -> None:
    """Accept submissions to this board again."""
    async with _audited(store, decision, "resume", f"board {board.name}") as tx:
        if not await tx.moderation.resume_board(board.id):
            raise UserError("not-paused", f"leaderboard {board.name!r} is not paused")


async def pause_gpu(store: Store, decision: Decision, gpu: str) -> str:
    """Start no more jobs on a GPU type, so that they wait in the queue; return its canonical name.

    UserError for a GPU type that no board runs on.
    """
    name = await _known_gpu(store, gpu)
    async with _audited(store, decision, "pause", f"gpu {name}") as tx:
        await tx.moderation.pause_gpu(name, decision.reason)
    return name


async def _known_gpu(store: Store, gpu: str) -> str:
    """Return a GPU type's canonical name; UserError if no board runs on it."""
    known = {each for board in await store.boards.all() for each in board.gpus}
    name = find_gpu_type(gpu, sorted(known))
    if name is None:
        raise unknown_name("gpu", gpu, known)
    return name


async def resume_gpu(store: Store, decision: Decision, gpu: str) -> str:
    """Start jobs on this GPU type again; return its canonical name."""
    name = find_gpu_type(gpu, await store.moderation.gpu_pauses())
    async with _audited(store, decision, "resume", f"gpu {name}") as tx:
        if name is None or not await tx.moderation.resume_gpu(name):
            raise UserError("not-paused", f"GPU type {gpu!r} is not paused")
    return name


async def set_limit(
    store: Store, decision: Decision, limit: RateLimit, identity: str | None = None
) -> None:
    """Limit everyone's submissions to one board and mode, or to all; or those of one person.

    UserError when no person has this identity, and for one's own account.
    """
    if identity is not None:
        person = await _other_person(store, decision, identity)
        limit = replace(limit, person=person, reason=decision.reason)
    subject = f"{limit.most} in {limit.window_words}, {await _covered(store, limit, identity)}"
    async with _audited(store, decision, "limit", subject) as tx:
        await tx.moderation.set_limit(limit)


async def drop_limit(
    store: Store,
    decision: Decision,
    board: BoardId | None,
    mode: Mode | None,
    *,
    identity: str | None = None,
) -> None:
    """Remove the limit of exactly this board, mode and person."""
    person = None if identity is None else await _person_id(store, identity)
    covered = await _covered(store, RateLimit(1, timedelta(1), board, mode), identity)
    async with _audited(store, decision, "unlimit", covered) as tx:
        if not await tx.moderation.drop_limit(board, mode, person):
            raise UserError("no-limit", "this limit does not exist; list the limits first")


async def set_quota(
    store: Store, decision: Decision, quota: Quota, identity: str | None = None
) -> Quota:
    """Limit the GPU time of a day: of each person, of all together, or of one; return the quota.

    UserError for a GPU type that no board runs on, and for one's own account.
    """
    if identity is not None:
        person = await _other_person(store, decision, identity)
        key = replace(quota.key, each_person=True, person=person)
        quota = replace(quota, key=key, reason=decision.reason)
    if quota.key.gpu is not None:
        quota = replace(quota, key=replace(quota.key, gpu=await _known_gpu(store, quota.key.gpu)))
    subject = await _covered_time(store, quota.key, identity)
    async with _audited(
        store, decision, "quota", f"{quota.key.unit.show(quota.most)} a day, {subject}"
    ) as tx:
        await tx.costs.set_quota(quota)
    return quota


async def drop_quota(
    store: Store, decision: Decision, key: QuotaKey, identity: str | None = None
) -> None:
    """Remove the quota of exactly this key, and of this person if there is one."""
    if identity is not None:
        key = replace(key, each_person=True, person=await _person_id(store, identity))
    if key.gpu is not None:
        limited = {each.key.gpu for each in await store.costs.quotas() if each.key.gpu}
        key = replace(key, gpu=find_gpu_type(key.gpu, sorted(limited)) or key.gpu)
    subject = f"{key.unit}, {await _covered_time(store, key, identity)}"
    async with _audited(store, decision, "unquota", subject) as tx:
        if not await tx.costs.drop_quota(key):
            raise UserError("no-limit", "this quota does not exist; list the limits first")


async def _covered_time(store: Store, key: QuotaKey, identity: str | None) -> str:
    """Return which people, boards and GPU types a quota covers, in words."""
    board = None if key.board is None else await store.boards.get(key.board)
    where = "every board" if board is None else f"board {board.name}"
    who = "each person" if key.each_person else "all people together"
    who = who if identity is None else f"person {identity}"
    return f"{who}, {where}, {key.gpu or 'all GPU types together'}"


async def _covered(store: Store, limit: RateLimit, identity: str | None) -> str:
    """Return which boards, modes and person a limit is for, in words."""
    limited_board = None if limit.board is None else await store.boards.get(limit.board)
    where = "every board" if limited_board is None else f"board {limited_board.name}"
    who = "" if identity is None else f", person {identity}"
    return f"{where}, {limit.mode or 'every mode'}{who}"


async def _exclude(
    store: Store, decision: Decision, submission: SubmissionId, kind: ExclusionKind
) -> None:
    target = await find_submission(store, submission)
    async with _audited(store, decision, kind.value, f"submission {submission}") as tx:
        await exclude(tx, Exclusion(target.id, kind, decision.reason))


def _audited(
    store: Store, decision: Decision, action: str, subject: str
) -> AbstractAsyncContextManager[Store]:
    return audited(store, decision.actor, action, subject, reason=decision.reason)


async def _person_id(store: Store, identity: str) -> PersonId:
    return (await _find_person(store, identity)).id


async def _find_person(store: Store, identity: str) -> Person:
    person = await store.people.find(identity)
    if person is None:
        raise UserError("unknown-person", "this person has no account here yet")
    return person


async def _other_person(store: Store, decision: Decision, identity: str) -> PersonId:
    person = await _person_id(store, identity)
    if person == decision.actor:
        raise UserError("own-account", "this is your own account; choose another person")
    return person
