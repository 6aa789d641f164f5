"""Reports for admins: statistics, workers, limits, the audit log, tokens."""

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from bot.domain import records
from bot.domain.accounts import Person, Token
from bot.domain.costs import NamedQuota
from bot.domain.ids import PersonId
from bot.domain.job import Worker
from bot.domain.scoring import pool_of
from bot.domain.times import show_deadline
from bot.reports.blocks import Block, Column, Report, Table, Text, Tone
from bot.reports.escaping import as_file, escape_formula
from runners.contract.verdict import VERDICT_WORDS

_QUEUE = (Column("GPU"), Column("queued", numeric=True), Column("running", numeric=True))
_DAYS = (Column("day (UTC)"), Column("submissions", numeric=True), Column("people", numeric=True))
_VERDICTS = (Column("verdict"), Column("evaluations", numeric=True))


def stats_report(stats: records.InstallationStats) -> Report:
    """Return the statistics, the queue first, because it is the most urgent."""
    counts = Text(f"{_counted(stats.people, 'account')}, {_counted(stats.boards, 'board')}")
    return Report("Statistics", (counts, *_queue(stats), *_last_two_weeks(stats)))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _queue(stats: records.InstallationStats) -> Iterator[Block]:
    if not stats.backlog:
        yield Text("no jobs are queued or running", Tone.QUIET)
        return
    rows = tuple(
        (gpu, str(counts.get("queued", 0)), str(counts.get("running", 0)))
        for gpu, counts in sorted(stats.backlog.items())
    )
    yield Table("queue", _QUEUE, rows)


def _last_two_weeks(stats: records.InstallationStats) -> Iterator[Block]:
    if not stats.days:
        yield Text("no submissions in the last two weeks", Tone.QUIET)
        return
    days = tuple((f"{each.day}", str(each.submissions), str(each.people)) for each in stats.days)
    yield Table("last two weeks", _DAYS, days)
    total = sum(stats.verdicts.values())
    most_first = sorted(stats.verdicts.items(), key=lambda item: -item[1])
    yield Table(
        "verdicts",
        _VERDICTS,
        tuple((VERDICT_WORDS[verdict], _share(count, total)) for verdict, count in most_first),
    )


def _share(count: int, total: int) -> str:
    return f"{count} ({count / total:.0%})"


_WORKER_COLUMNS = (
    Column("worker"),
    Column("pool"),
    Column("GPU slots"),
    Column("running", numeric=True),
    Column("sandbox"),
    Column("harness"),
    Column("seen"),
)

_OUTAGE_COLUMNS = (Column("worker"), Column("GPU"), Column("card"), Column("why"))


def workers_report(workers: Sequence[Worker], now: datetime) -> Report:
    """Return one line per worker; workers that miss heartbeats have a table of their own.

    The name of a remote worker is the label of its token, a colon, and the id of its session.
    """
    if not workers:
        words = "no worker is connected, so nothing is judged; start `podium up` or `podium worker`"
        return Report("Workers", (Text(words, Tone.QUIET),))
    outages = tuple(row for each in workers for row in _outages(each))
    groups = {
        "connected": [each for each in workers if not each.is_silent(now)],
        "no heartbeat, probably lost": [each for each in workers if each.is_silent(now)],
    }
    tables = [
        Table(title, _WORKER_COLUMNS, tuple(_row(each, now) for each in group))
        for title, group in groups.items()
        if group
    ]
    if outages:
        tables.append(Table("out of service", _OUTAGE_COLUMNS, outages))
    return Report("Workers", tuple(tables))


def _outages(worker: Worker) -> Iterator[tuple[str, ...]]:
    for offer in worker.offers.values():
        for each in offer.out_of_service:
            yield worker.name, each.gpu, each.card, each.why


def _row(worker: Worker, now: datetime) -> tuple[str, ...]:
    offers = worker.offers.values()
    return (
        worker.name,
        _joined(pool_of(worker.name, runner) for runner in worker.offers),
        _slots(worker),
        str(worker.running),
        _joined(_sandbox(offer.isolation.outer, offer.isolation.missing) for offer in offers),
        _joined(offer.harness_version for offer in offers),
        "-" if worker.seen_at is None else _ago(worker.seen_at, now),
    )


def _slots(worker: Worker) -> str:
    if worker.gpus is None:
        return "no answer yet"
    slots: Counter[str] = Counter()
    for offer in worker.offers.values():
        slots.update(offer.gpus)
    named = [f"{slots[gpu]} x {gpu}" if gpu in slots else gpu for gpu in sorted(worker.gpus)]
    return ", ".join(named) or "none"


def _sandbox(outer: str, missing: Collection[str]) -> str:
    return f"{outer}, without {', '.join(sorted(missing))}" if missing else outer


def _joined(words: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(words)) or "-"


def _ago(then: datetime, now: datetime) -> str:
    return f"{max(0.0, (now - then).total_seconds()):.0f} s ago"


_LIMITS = (Column("board"), Column("mode"), Column("most", numeric=True), Column("in"))
_QUOTAS = (Column("board"), Column("GPU"), Column("of"), Column("most", numeric=True))
_PAUSES = (Column("paused"), Column("reason"))
_OWN_LIMITS = (Column("who"), Column("most"), Column("reason"))
_BANS = (Column("who"), Column("reason"))


def submission_rules_report(rules: records.SubmissionRules) -> Report:
    """Return a table each of limits, quotas, pauses and bans, if there are any."""
    blocks: list[Block] = []
    rows = tuple(_limit_row(each) for each in rules.limits if each.person is None)
    if rows:
        blocks.append(Table("limits per person", _LIMITS, rows))
    rows = tuple(_own_limit_row(each, each.person) for each in rules.limits if each.person)
    if rows:
        blocks.append(Table("limits of one person", _OWN_LIMITS, rows, is_list=True))
    if rules.quotas:
        blocks.append(Table("GPU time a day", _QUOTAS, tuple(map(_quota_row, rules.quotas))))
    pauses = _pauses(rules)
    if pauses:
        blocks.append(Table("pauses", _PAUSES, pauses))
    if rules.bans:
        rows = tuple((person.distinct_name, ban.words) for person, ban in rules.bans)
        blocks.append(Table("bans", _BANS, rows, is_list=True))
    nothing = Text("There are no limits, quotas, pauses or bans.", Tone.QUIET)
    return Report("Active limits, pauses and bans", tuple(blocks) or (nothing,))


def rules_of_person(
    rules: records.SubmissionRules, person: PersonId, boards: Collection[str]
) -> list[str]:
    """Return in sentences each limit and quota that counts for a person on these boards."""
    names, people = {None, *boards}, {None, person}
    limits = [
        _limit_sentence(each)
        for each in rules.limits
        if each.board in names and each.limit.person in people
    ]
    return limits + [
        _quota_sentence(each)
        for each in rules.quotas
        if each.board in names and each.quota.key.person in people
    ]


def _limit_sentence(named: records.NamedLimit) -> str:
    limit = named.limit
    mode = f"{limit.mode} " if limit.mode else ""
    noun = "submission" if limit.most == 1 else "submissions"
    where = named.board or "all boards together"
    why = f" ({limit.reason})" if limit.reason else ""
    return f"At most {limit.most} {mode}{noun} to {where} in {limit.window_words}{why}"


def _quota_sentence(named: NamedQuota) -> str:
    key = named.quota.key
    whose = "" if key.each_person else " of all people together"
    gpu = f" on {key.gpu}" if key.gpu else ""
    where = named.board or "all boards together"
    most = key.unit.show(named.quota.most)
    why = f" ({named.quota.reason})" if named.quota.reason else ""
    return f"At most {most} of GPU time a day{gpu}{whose}, for {where}{why}"


def _limit_row(each: records.NamedLimit) -> tuple[str, ...]:
    limit = each.limit
    mode = limit.mode or "all modes"
    return each.board or "all boards", mode, str(limit.most), limit.window_words


def _own_limit_row(each: records.NamedLimit, person: Person) -> tuple[str, ...]:
    limit, (board, mode, most, window) = each.limit, _limit_row(each)
    end = "" if limit.until is None else f" (until {show_deadline(limit.until)})"
    what = f"{most} in {window}, {board}, {mode}"
    return person.distinct_name, what, f"{limit.reason}{end}"


def _quota_row(each: NamedQuota) -> tuple[str, ...]:
    key = each.quota.key
    whose = "each person" if key.each_person else "everyone"
    if each.person is not None:
        why = f" ({each.quota.reason})" if each.quota.reason else ""
        whose = f"{each.person.distinct_name}{why}"
    return each.board or "all boards", key.gpu or "all", whose, key.unit.show(each.quota.most)


def _pauses(rules: records.SubmissionRules) -> tuple[tuple[str, str], ...]:
    whole = () if rules.pause is None else (("all submissions", rules.pause),)
    boards = ((f"board {name}", why) for name, why in sorted(rules.boards.items()))
    gpus = ((f"GPU type {name}", why) for name, why in sorted(rules.gpus.items()))
    return *whole, *boards, *gpus


def audit_report(decisions: Sequence[records.NamedAuditEntry]) -> Report:
    """Return one line per decision; times in UTC."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(("at", "who", "action", "subject", "reason"))
    for each in decisions:
        row = each.entry
        words = (each.actor_name or "Podium", row.action, row.subject, row.reason)
        table.writerow((f"{row.at:%Y-%m-%dT%H:%M:%SZ}", *map(escape_formula, words)))
    file = as_file("audit.csv", written.getvalue())
    return Report("Audit log", (Text(f"{len(decisions)} decisions, newest first"), file))


_TOKENS_COLUMNS = (Column("worker"), Column("created"), Column("expires"))


def worker_tokens_report(tokens: Sequence[Token], now: datetime) -> Report:
    """Return one line per token; expired ones are marked."""
    if not tokens:
        words = "there are no worker tokens; create one with `podium token create --worker NAME`"
        return Report("Worker tokens", (Text(words, Tone.QUIET),))
    rows = tuple((each.label, f"{each.created_at:%Y-%m-%d}", _ends(each, now)) for each in tokens)
    return Report("Worker tokens", (Table("active tokens", _TOKENS_COLUMNS, rows),))


def personal_tokens_report(tokens: Sequence[Token], now: datetime) -> Report:
    """Return one line per token of one person; expired ones are marked."""
    if not tokens:
        words = "this person has no tokens; create one with `podium token create --person NAME`"
        return Report("Tokens", (Text(words, Tone.QUIET),))
    columns = (Column("id", numeric=True), Column("for"), Column("scope"), *_TOKENS_COLUMNS[1:])
    rows = tuple(
        (str(each.id), each.label, each.scope.word, f"{each.created_at:%Y-%m-%d}", _ends(each, now))
        for each in tokens
    )
    return Report("Tokens", (Table("active tokens", columns, rows),))


def _ends(token: Token, now: datetime) -> str:
    if token.expires_at is None:
        return "never"
    past = ", expired" if token.expires_at <= now else ""
    return f"{token.expires_at:%Y-%m-%d}{past}"
