"""Examines a season's store and Discord: each submission stored and displayed once, no ping."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
from rich.cells import cell_len

from bot.app.context import SystemClock
from bot.discord.draw import TABLE_COLUMNS
from bot.domain.ids import SubmissionId
from bot.services.standings import placements
from bot.store.postgres import open_store
from runners.contract.verdict import VERDICT_WORDS, Verdict
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.discord.users.person import Person
from tests.e2e.season.crowd import EXPIRED, QUESTION, Crowd, number_in

STORED = """
select s.id, p.identity, b.name as board, s.mode, s.gpus, convert_from(x.text, 'UTF8') as source,
    array(select place::json ->> 'answer' from displays d where d.submission = s.id) as keys,
    array(select (gpu, state)::text from jobs where jobs.submission = s.id) as jobs,
    coalesce((select jsonb_object_agg(gpu, verdict) from evaluations e where e.submission = s.id),
        '{}')::text as verdicts
from submissions s
join people p on p.id = s.person
join boards b on b.id = s.board
join sources x on x.sha256 = s.source
where p.identity like 'discord:%'
order by s.id
"""
SUBMITS = re.compile(r"leaderboard submit |submission rerun|Submit$|Run again$")
"""Interactions that may make a submission: commands by path, buttons by label."""
UNAVOIDABLE = {
    10062: "answered after 3 s",
    40060: "acknowledged already",
    10015: "answered what was not acknowledged",
    50027: "token expired",
}
"""Refusals that are correct after kills and lost responses."""
ALREADY = "was already submitted again as"
_REPORT = re.compile(r"\*\*submission #(\d+):")
_LINE = re.compile(r"<@(\d+)>'s submission #(\d+) ")
_FENCE = re.compile(r"```.*?```", re.DOTALL)
_LIVE = re.compile(
    r"@(?:everyone|here)|(?<!\\)<(?:@&?|#)1>|(?<!\\)<t:1:R>|\]\(http|(?<!\\)\|\||(?<![\\*])\*\*bold"
    r"|(?<!\\)</leaderboard list:1>|[\x1b\u061c\u202a-\u202e\u2066-\u2069]"
)
"""Parts of names that must have no effect in a message."""


@dataclass(frozen=True)
class Season:
    """The season that is examined."""

    server: LocalDiscord
    room: Channel
    people: Sequence[Person]
    dsn: str
    crowd: Crowd
    folder: Path
    """The folder with the logs of the copies."""


@dataclass(slots=True)
class Findings:
    """The figures of a season, and its faults by kind."""

    figures: dict[str, object] = field(default_factory=dict)
    store: list[str] = field(default_factory=list)
    """Submissions without a command or with several, or commands with several submissions."""
    display: list[str] = field(default_factory=list)
    """Reports, lines or threads that are missing or doubled."""
    pings: list[str] = field(default_factory=list)
    """Messages that notify a person, or threads with a person who does not belong there."""
    limits: list[str] = field(default_factory=list)
    """What Discord refused, and tables that are too wide."""
    untrue: list[str] = field(default_factory=list)
    """Answers that contradict the store."""
    unfinished: list[str] = field(default_factory=list)
    """Unfinished interactions and displays, and bugs that were logged."""

    @property
    def faults(self) -> list[str]:
        """Every fault with its kind."""
        kinds = ("store", "display", "pings", "limits", "untrue", "unfinished")
        return [f"{kind}: {fault}" for kind in kinds for fault in getattr(self, kind)]


async def examine(season: Season) -> Findings:
    """Compare the messages on Discord with the store."""
    connection = await asyncpg.connect(season.dsn)
    try:
        stored = await connection.fetch(STORED)
    finally:
        await connection.close()
    by_key = {key: row for row in stored for key in row["keys"]}
    findings = Findings(unfinished=list(season.crowd.faults))
    findings.store += stored_once(season, stored, by_key)
    findings.display += reported_once(season, stored)
    findings.display += threads_once(season, stored)
    findings.display += lines_once(season, stored, await _best(season.dsn, stored))
    findings.pings += pings(season)
    findings.limits += [*_refused(season), *too_wide(season)]
    findings.untrue += answers(season, by_key)
    findings.unfinished += _bugs(season)
    findings.figures = _figures(season, stored)
    return findings


def _sent(season: Season) -> Iterator[Message]:
    """Every message of the bot, with those that only one person sees."""
    bot = season.server.world.bot
    for channel in season.server.world.channels.values():
        yield from (each for each in channel.all_messages.values() if each.author is bot)


def _submitting(season: Season) -> list[Interaction]:
    return [x for x in season.server.world.interactions.values() if SUBMITS.match(x.name)]


def stored_once(
    season: Season, stored: Sequence[asyncpg.Record], by_key: dict[str, asyncpg.Record]
) -> Iterator[str]:
    asked = {f"discord:{each.id}": each for each in _submitting(season)}
    for row in stored:
        if len(row["keys"]) != 1 or row["keys"][0] not in asked:
            yield f"submission {row['id']} has the commands {row['keys']}"
        elif f"discord:{asked[row['keys'][0]].user.id}" != row["identity"]:
            yield f"submission {row['id']} is {row['identity']}'s"
    if len(by_key) != len(stored):
        yield f"{len(stored)} submissions of {len(by_key)} commands"


def _private(season: Season) -> list[Channel]:
    return [each for each in season.room.threads if each.private]


def reported_once(season: Season, stored: Sequence[asyncpg.Record]) -> Iterator[str]:
    """Check that each report is once in a thread of its owner, complete and correct."""
    places = defaultdict(list)
    for thread in _private(season):
        for message in thread.messages:
            if found := _REPORT.match(message.content):
                places[int(found[1])].append(message)
        yield from _doubled(thread)
    for row in stored:
        found_in = places.pop(row["id"], [])
        owner = int(row["identity"].partition(":")[2])
        if len(found_in) != 1:
            yield f"submission {row['id']} has {len(found_in)} reports in threads"
        for message in found_in:
            if owner not in message.channel.members:
                yield f"submission {row['id']} is reported where its owner is not"
            yield from _contradictions(row, message.text)
    yield from (f"a report of submission {number}, which is not stored" for number in places)


def _doubled(thread: Channel) -> Iterator[str]:
    said = Counter(each.content.split("\n")[0] for each in thread.messages if each.content)
    yield from (f"{thread.name}: {count} x {text}" for text, count in said.items() if count > 1)


def _contradictions(row: asyncpg.Record, report: str) -> Iterator[str]:
    """Compare the verdicts in a report with the store, and those with the source."""
    verdicts = dict(re.findall(r'"([^"]+)": "([^"]+)"', row["verdicts"]))
    for gpu in row["gpus"]:
        verdict = Verdict(verdicts.get(gpu, "task_error"))
        run = f"in a {row['mode']} run"
        if not re.search(rf"{VERDICT_WORDS[verdict]}[^\n]* {run} on {gpu}", report):
            yield f"submission {row['id']} is {verdict} on {gpu}, reported is {report[:200]!r}"
        if f"verdict={verdict} " not in row["source"]:
            yield f"submission {row['id']} is {verdict} on {gpu}, its jobs are {row['jobs']}"


def threads_once(season: Season, stored: Sequence[asyncpg.Record]) -> Iterator[str]:
    names = Counter((each.private, each.name) for each in season.room.threads)
    yield from (f"{count} threads {name}" for (_, name), count in names.items() if count > 1)
    wanted = {(row["identity"], row["board"]) for row in stored}
    if len(_private(season)) != len(wanted):
        yield f"{len(_private(season))} private threads of {len(wanted)} people and boards"
    yield from _doubled(season.room)


def _lines(season: Season) -> list[tuple[int, int, Message]]:
    """The public lines, each with its person and submission."""
    public = [season.room, *(each for each in season.room.threads if not each.private)]
    messages = [each for place in public for each in place.messages]
    found = [(_LINE.match(each.content), each) for each in messages]
    return [(int(match[1]), int(match[2]), each) for match, each in found if match]


async def _best(dsn: str, stored: Sequence[asyncpg.Record]) -> set[int]:
    """The ranked submissions that are their person's best in the end."""
    async with open_store(dsn, SystemClock()) as store:
        ranked = [row["id"] for row in stored if row["mode"] == "ranked"]
        found = {each: await placements(store, SubmissionId(each)) for each in ranked}
    return {number for number, places in found.items() if any(each.is_best for each in places)}


def lines_once(season: Season, stored: Sequence[asyncpg.Record], best: set[int]) -> Iterator[str]:
    """Check that each final best has one line; others may have been beaten before their turn."""
    rows = {row["id"]: row for row in stored}
    lines = _lines(season)
    count = Counter(number for _, number, _ in lines)
    yield from (f"submission {each} is best and has no line" for each in sorted(best - set(count)))
    yield from (f"submission {each} has {n} lines" for each, n in count.items() if n > 1)
    for user, number, message in lines:
        row = rows.get(number)
        if row is None or row["identity"] != f"discord:{user}" or row["mode"] != "ranked":
            yield f"an untrue line {message.content!r}"
        elif message.channel.name != f"Results of {row['board']}":
            yield f"submission {number} of {row['board']} has its line in {message.channel.name}"
        if not message.silent:
            yield f"the line of submission {number} is not silent"


def pings(season: Season) -> Iterator[str]:
    for each in _sent(season):
        if each.pings:
            yield f"{each.content[:100]!r} pings {each.pings}"
        if live := _LIVE.search(_FENCE.sub("", each.text)):
            yield f"{live[0]!r} is alive in {each.text[:300]!r}"
    for record in season.server.requests:
        sent = record.body if isinstance(record.body, dict) else {}
        sent = sent.get("data") or sent
        allowed = sent.get("allowed_mentions", {}) if sent.get("content") else {"parse": []}
        if not allowed or any(allowed.get(key) for key in ("parse", "users", "roles")):
            yield f"{record.method} {record.path} allows mentions: {allowed}"
    bot = season.server.world.bot.id
    for thread in _private(season):
        if len(others := [each for each in thread.members if each != bot]) != 1:
            yield f"{others} are in {thread.name!r}"


def _refused(season: Season) -> Iterator[str]:
    for each in season.server.refused:
        if each.status != 429 and each.code not in UNAVOIDABLE:
            yield each.summary()
    yield from (f"the gateway closed with {code}" for code in season.server.gateway.closes)
    yield from (f"not served: {request}" for request in season.server.rest.unknown)
    yield from season.server.rest.crashes


def too_wide(season: Season) -> Iterator[str]:
    for each in _sent(season):
        for block in each.text.split("```")[1::2]:
            lines = block.splitlines() if block.startswith("\n") else []
            if any(cell_len(line) > TABLE_COLUMNS for line in lines):
                yield f"a table is too wide in {each.text[:300]!r}"


def answers(season: Season, by_key: dict[str, asyncpg.Record]) -> Iterator[str]:
    """Check that each answer is filled, and agrees with the store."""
    submitting = defaultdict(list)
    for run in season.server.world.interactions.values():
        if run.answer is None or run.id in season.crowd.expired or run.reply is None:
            continue
        if run.reply.loading:
            yield f"{run.name} of {run.user.name} ({run.id}) is still thinking"
        elif SUBMITS.match(run.name):
            submitting[run.reply.id].append(run)
    for runs in submitting.values():  # a question and its answer are one message
        made = [by_key[key] for each in runs if (key := f"discord:{each.id}") in by_key]
        if len(made) > 1:
            yield f"{runs[0].name} ({runs[0].id}) made {[row['id'] for row in made]}"
        yield from _about_a_submission(runs, made[0] if made else None)


def _about_a_submission(runs: list[Interaction], row: asyncpg.Record | None) -> Iterator[str]:
    run = runs[0]
    messages = [run.message, *(each for run in runs for each in run.followups)]
    texts = [each.text for each in messages if not each.deleted]
    reports = [text for text in texts if _REPORT.match(text)]
    told = number_in(texts[0]) if texts else None
    if len(reports) > 1:
        yield f"{run.name} ({run.id}) has {len(reports)} reports"
    if row is not None and told != row["id"]:
        yield f"{run.name} ({run.id}) made submission {row['id']}, and is told {texts}"
    elif row is not None and not reports:
        yield f"{run.name} ({run.id}) does not have the report of {row['id']}: {texts}"
    elif row is not None:
        yield from _contradictions(row, reports[0])
    elif texts and ALREADY in texts[0]:
        return  # an earlier click of the same button made one
    elif told is not None or not any(
        words in texts[0] for words in (QUESTION, EXPIRED, "\u26a0", "failed", "already")
    ):
        yield f"{run.name} ({run.id}) made nothing, and is told {texts}"


def _bugs(season: Season) -> Iterator[str]:
    for log in season.folder.rglob("podium.log"):
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            if '"incident"' in line or '"exception"' in line:
                yield f"{log.parent.parent.name}: {line[:3000]}"


def _told_directly(season: Season) -> str:
    """How many direct messages there are, and the beginnings of the most frequent ones."""
    said = Counter(re.sub(r"\d+", "#", m.text[:60]) for each in season.people for m in each.dms)
    return f"{said.total()} {said.most_common(3) or ''}".strip()


def _figures(season: Season, stored: Sequence[asyncpg.Record]) -> dict[str, object]:
    interactions = list(season.server.world.interactions.values())
    ephemeral = [each for each in _sent(season) if each.ephemeral]
    refused = Counter(UNAVOIDABLE.get(x.code, str(x.status)) for x in season.server.refused)
    return {
        "interactions": len(interactions),
        "of these could make a submission": len(_submitting(season)),
        "acknowledged": sum(each.answer is not None for each in interactions),
        "submissions stored": len(stored),
        "reports in answers": sum(bool(_REPORT.match(each.content)) for each in ephemeral),
        "reports in private threads": sum(
            bool(_REPORT.match(m.content)) for each in _private(season) for m in each.messages
        ),
        "public lines": len(_lines(season)),
        "private threads": len(_private(season)),
        "public threads": len(season.room.threads) - len(_private(season)),
        "direct messages": _told_directly(season),
        "messages of the bot": len(list(_sent(season))),
        "refused, unavoidably": dict(refused),
    }
