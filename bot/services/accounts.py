"""A person's display name, and their own data: all of it in a zip, and its deletion."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.domain.accounts import DELETED_NAME, SYSTEM_NAME, Person
from bot.domain.errors import UserError
from bot.domain.ids import PersonId
from bot.domain.names import skeleton
from bot.domain.status import disclosed
from bot.domain.submission import Submission
from bot.ports import Clock, Store
from bot.services.audit import audited
from bot.services.boards import ZipParts

_PAGE = 200
_DAY = timedelta(days=1)
_SINCE = datetime(1971, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class OwnData:
    """Everything that is stored about one person, as zips of a limited size."""

    zips: tuple[bytes, ...]
    submissions: int


async def export_account(store: Store, person: PersonId, zip_bytes: int) -> OwnData:
    """Return the person's account, settings, GPU time, submissions, reports and sources.

    Reports are what the person may see: they do not have the secret inputs of ranked runs.
    """
    account = await _account(store, person)
    parts = ZipParts(zip_bytes)
    parts.add("account.json", _json(await _settings(store, account)))
    submitted = await _submissions(store, person)
    for each in submitted:
        found = [disclosed(one.evaluation) for one in await store.results.evaluations(each.id)]
        report = {
            "number": each.id,
            "file": each.file_name,
            "mode": each.mode,
            "gpus": each.gpus,
            "submitted_at": each.created_at,
            "readers_of_source": each.consent,
            "note": each.note,
            "evaluations": [one.model_dump(mode="json") for one in found],
        }
        parts.add(f"submissions/{each.id}.json", _json(report))
        source = await store.submissions.source(each.id)
        parts.add(f"submissions/{each.id}-{each.file_name}", source)
    return OwnData(parts.close(), len(submitted))


async def _account(store: Store, person: PersonId) -> Person:
    found = await store.people.get(person)
    if found is None:
        raise LookupError(f"person {person} is missing")
    return found


async def _settings(store: Store, account: Person) -> Mapping[str, Any]:
    person, rights = account.id, await store.rights.of(account.id)
    ban = await store.moderation.ban_of(person)
    used = await store.costs.usage(_SINCE, person)
    return {
        "identity": account.identity,
        "name": account.name,
        "since": account.created_at,
        "direct_messages": await store.displays.conversation(person),
        "roles": sorted(rights.credentials),
        "is_admin": rights.is_admin,
        "may_create_boards": rights.is_creator,
        "banned": None if ban is None else ban.words,
        "notifications": sorted(await store.listeners.kinds(account.identity)),
        "tokens": [
            {"number": each.id, "label": each.label, "scope": each.scope, "at": each.created_at}
            for each in await store.tokens.of(person)
        ],
        "boards": [each.name for each in await store.boards.all() if each.creator == person],
        "gpu_time": [
            {"day": each.day, "board": each.board, "gpu": each.gpu, "for": each.kind,
             "seconds": each.seconds}
            for each in used
        ],
    }  # fmt: skip


async def _submissions(store: Store, person: PersonId) -> Sequence[Submission]:
    found: list[Submission] = []
    while True:
        before = found[-1].id if found else None
        page = await store.submissions.history(person, None, before, _PAGE)
        found += page
        if len(page) < _PAGE:
            return found


def _json(value: object) -> str:
    return json.dumps(value, indent=1, default=str, ensure_ascii=False)


async def delete_account(store: Store, clock: Clock, person: PersonId) -> tuple[str, ...]:
    """Delete the person's data; scores stay, as those of a deleted account.

    Unfinished submissions are cancelled first. Returns the person's private threads. UserError
    while a ban, a limit or a running comparison needs the account.
    """
    account = await _account(store, person)
    if await store.moderation.ban_of(person) is not None:
        raise UserError("banned", "you are banned; ask an admin to delete your account")
    unfinished = await store.jobs.unfinished_of(person)
    await store.publications.cancel(person, "because its account is deleted")
    for submission in unfinished:
        await store.jobs.request_cancel(submission)
    submitted = await _submissions(store, person)
    await _require_uncounted(store, clock, person, submitted)
    pending = await store.confirmations.concerning([each.id for each in submitted])
    if await store.jobs.unfinished_of(person) or any(each.is_pending for each in pending):
        raise UserError(
            "unfinished", "a run of yours has not ended yet; run the command again in a few minutes"
        )
    async with store.transaction() as tx:
        threads = await tx.people.erase(account)
        await tx.audit.record(person, "delete-account", f"person {person}", "")
    return threads


async def _require_uncounted(
    store: Store, clock: Clock, person: PersonId, submitted: Sequence[Submission]
) -> None:
    """Raise UserError while a limit or quota counts a submission: a new account would be free."""
    limits, quotas = await store.moderation.limits(), await store.costs.quotas()
    if person in {*(each.person for each in limits), *(each.key.person for each in quotas)}:
        raise UserError("limited", "you are limited; ask an admin to delete your account")
    windows = [each.window for each in limits if each.person is None]
    if any(each.key.person is None for each in quotas):
        windows.append(_DAY)
    if not windows or not submitted:
        return
    free_at = submitted[0].created_at + max(windows)
    if free_at > clock.now():
        when = f"{free_at:%Y-%m-%d %H:%M} UTC"
        raise UserError(
            "counted",
            f"limits still count your last submission; delete your account after {when}",
            {when: free_at},
        )


LONGEST_NAME = 32
"""The most characters of a display name, as on Discord."""
RENAME_PAUSE = timedelta(hours=1)
"""How long after choosing a name the person can choose another one."""
_RESERVED = frozenset({skeleton(SYSTEM_NAME), skeleton(DELETED_NAME)})


async def choose_name(store: Store, person: Person, typed: str) -> Person:
    """Give a person the display name that they typed; UserError if it is refused.

    It replaces the name that their front end reports, now and later.
    """
    name = " ".join(typed.split())
    if hidden := next((each for each in name if not each.isprintable()), ""):
        message = f"a display name has visible characters only; yours has U+{ord(hidden):04X}"
        raise UserError("bad-name", message)
    if not 1 <= len(name) <= LONGEST_NAME:
        message = f"a display name has 1 to {LONGEST_NAME} characters; yours has {len(name):,}"
        raise UserError("bad-name", message)
    if skeleton(name) in _RESERVED:
        raise UserError("bad-name", f"Podium itself uses the name {name!r}; choose another")
    subject, reason = f"person {person.identity}", f"{person.name} is now {name}"
    async with audited(store, person.id, "rename", subject, reason=reason) as tx:
        renamed = await tx.people.rename(person.id, name, RENAME_PAUSE)
        if renamed is None:
            message = (
                "a display name can be changed once an hour, and not to one that an admin reset"
            )
            raise UserError("rate-limit", f"{message}; try later, or another name")
    return renamed
