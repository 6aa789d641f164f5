"""The report of the workers that live."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from bot.domain.job import Worker
from bot.domain.score import pool_of
from bot.reports.blocks import Column, Report, Table, Text, Tone

_COLUMNS = (
    Column("worker"),
    Column("pool"),
    Column("GPU slots"),
    Column("running", numeric=True),
    Column("sandbox"),
    Column("harness"),
    Column("seen"),
)


_OUT = (Column("worker"), Column("GPU"), Column("card"), Column("why"))


def workers_report(workers: Sequence[Worker], now: datetime) -> Report:
    """One line for each worker; those that missed heartbeats are listed as silent.

    The name of a remote worker has a colon, after that of its token.
    """
    if not workers:
        words = "no worker lives: nothing is judged; start `podium up` or `podium worker`"
        return Report("Workers", (Text(words, Tone.QUIET),))
    out = tuple(row for each in workers for row in _outages(each))
    groups = {
        "living": [each for each in workers if not each.is_silent(now)],
        "silent: probably lost": [each for each in workers if each.is_silent(now)],
    }
    tables = [
        Table(title, _COLUMNS, tuple(_row(each, now) for each in group))
        for title, group in groups.items()
        if group
    ]
    return Report("Workers", (*tables, Table("out of service", _OUT, out)) if out else (*tables,))


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
        return "asking"
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
