"""What a run left behind, read by SQL and judged: nothing lost, doubled, stuck or untrue."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import asyncpg

from bot.domain.job import FINAL_STATES, MOST_ATTEMPTS
from bot.domain.scoring import score
from runners.contract.evaluation import Evaluation
from runners.contract.task import Mode, TaskDefinition
from runners.contract.verdict import Verdict
from tests.e2e.chaos.crowd import Order

JOBS = """
select submissions.id as submission, file_name, submissions.mode, jobs.id as job, jobs.gpu, state,
    attempt, max_attempts, fence, lease_until, error,
    (select count(*) from evaluations where evaluations.submission = jobs.submission
        and evaluations.gpu = jobs.gpu) as evaluations,
    evaluations.verdict, evaluation, definition, time_ns, half_width_ns,
    array(select kind from job_events where job_events.job = jobs.id order by id) as kinds
from submissions
join jobs on jobs.submission = submissions.id
join task_versions on task_versions.id = submissions.task_version
left join evaluations on evaluations.job = jobs.id
left join scores on scores.job = jobs.id
where submissions.id > 0
order by jobs.id
"""
FENCES = "select id as job, fence from jobs"
"""Of the house's own jobs as well."""
ACCEPTED_AT = "select at from evaluations order by at"
DEALT = frozenset({Verdict.CRASHED, Verdict.MEMORY_EXCEEDED})
"""What a kernel is said to have done whose process was killed: nobody tells the judge by whom."""
FINAL = {state.value for state in FINAL_STATES}


@dataclass(slots=True)
class Findings:
    """The faults by kind, and the figures of a run."""

    evaluations: int = 0
    attempts: Counter[int] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    """Acknowledged submissions or jobs of theirs that are not there."""
    doubled: list[str] = field(default_factory=list)
    """More than one submission, job or evaluation where one belongs."""
    stuck: list[str] = field(default_factory=list)
    """Jobs that did not end with an evaluation."""
    untrue: list[str] = field(default_factory=list)
    """Rows that contradict each other or what the sources ask for."""
    killed_by_us: int = 0
    """Right kernels whose verdict is the death that we dealt their candidate."""

    @property
    def faults(self) -> list[str]:
        """Every fault with its kind."""
        kinds = ("lost", "doubled", "stuck", "untrue")
        return [f"{kind}: {fault}" for kind in kinds for fault in getattr(self, kind)]


@dataclass(frozen=True, slots=True)
class Expected:
    """What was handed in, what was acknowledged, and whose candidate was killed."""

    orders: Sequence[Order]
    receipts: Mapping[str, int]
    struck: frozenset[int]


async def examine(dsn: str, expected: Expected, logs: Sequence[Path]) -> Findings:
    """Read every row of a finished run and hold it against what was asked."""
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch(JOBS)
        fences = {row["job"]: row["fence"] for row in await connection.fetch(FENCES)}
    finally:
        await connection.close()
    findings = Findings()
    _compare_with_orders(findings, rows, expected)
    orders = {order.file_name: order for order in expected.orders}
    for row in rows:
        _look_at_job(findings, row)
        if row["evaluation"] is not None:
            struck = row["submission"] in expected.struck
            _look_at_result(findings, row, orders[row["file_name"]], struck=struck)
    _read_log(findings, fences, logs)
    return findings


def _compare_with_orders(
    findings: Findings, rows: Sequence[asyncpg.Record], expected: Expected
) -> None:
    stored: dict[str, set[int]] = {}
    for row in rows:
        stored.setdefault(row["file_name"], set()).add(row["submission"])
    for order in expected.orders:
        ids = stored.get(order.file_name, set())
        if expected.receipts.get(order.file_name) not in ids:
            findings.lost.append(f"submission {order.file_name}: receipt without a row")
        if len(ids) > 1:
            findings.doubled.append(f"submission {order.file_name}: {sorted(ids)}")
        gpus = Counter(row["gpu"] for row in rows if row["file_name"] == order.file_name)
        findings.lost += [f"job {order.file_name} {gpu}" for gpu in order.gpus if not gpus[gpu]]
        findings.doubled += [f"job {order.file_name} {gpu}" for gpu in gpus if gpus[gpu] > 1]


def _look_at_job(findings: Findings, row: asyncpg.Record) -> None:
    name = f"job {row['job']} of {row['file_name']} on {row['gpu']}"
    findings.evaluations += row["evaluations"]
    findings.attempts[row["attempt"]] += 1
    if row["evaluations"] > 1:
        findings.doubled.append(f"{name}: {row['evaluations']} evaluations")
    if row["state"] != "succeeded" or not row["evaluations"]:
        findings.stuck.append(f"{name}: {row['state']}, {row['error']}")
    if row["lease_until"] is not None:
        findings.stuck.append(f"{name}: still leased")
    if not row["attempt"] <= row["max_attempts"] <= MOST_ATTEMPTS:
        findings.untrue.append(f"{name}: attempt {row['attempt']} of {row['max_attempts']}")
    kinds = list(row["kinds"])
    if kinds[:1] != ["queued"] or kinds[-1] not in FINAL or len(FINAL.intersection(kinds)) != 1:
        findings.untrue.append(f"{name}: events {kinds}")
    if sum(kind in FINAL for kind in kinds) != 1 or kinds.count("running") != row["fence"]:
        findings.untrue.append(f"{name}: fence {row['fence']}, events {kinds}")


def _look_at_result(findings: Findings, row: asyncpg.Record, order: Order, *, struck: bool) -> None:
    name = f"{row['file_name']} on {row['gpu']}"
    evaluation = Evaluation.model_validate_json(row["evaluation"])
    verdict = evaluation.verdict
    if struck and verdict in DEALT and verdict is not order.verdict:
        findings.killed_by_us += 1
    elif verdict is not order.verdict:
        told = f"{evaluation.message}; candidate killed: {struck}; log {evaluation.log[-600:]!r}"
        findings.untrue.append(f"{name}: {verdict} ({told}), not {order.verdict}")
    if (row["verdict"], row["gpu"], row["mode"]) != (verdict, evaluation.gpu, evaluation.mode):
        findings.untrue.append(f"{name}: the row contradicts its evaluation")
    value = score(TaskDefinition.model_validate_json(row["definition"]), evaluation)
    stored = None if row["time_ns"] is None else (row["time_ns"], row["half_width_ns"])
    if stored != (None if value is None else (value.time_ns, value.half_width_ns)):
        findings.untrue.append(f"{name}: score {stored}, evaluation says {value}")
    if (stored is not None) != (verdict is Verdict.PASSED and evaluation.mode is Mode.RANKED):
        findings.untrue.append(f"{name}: score {stored} for {verdict} in mode {evaluation.mode}")
    if stored and order.time_us and abs(stored[0] / (1_000 * order.time_us) - 1) > 1e-9:
        findings.untrue.append(f"{name}: {stored[0]} ns, not {order.time_us} µs")


def _read_log(findings: Findings, fences: Mapping[int, int], logs: Sequence[Path]) -> None:
    """A result is taken once, from the lease that the job had last."""
    taken = Counter[int]()
    for line in _events(logs, "job-accepted"):
        taken[line["job"]] += 1
        if line["fence"] != fences.get(line["job"]):
            findings.doubled.append(f"job {line['job']}: a result of fence {line['fence']} counts")
    findings.doubled += [
        f"job {job}: taken {count} times" for job, count in taken.items() if count > 1
    ]


def _events(logs: Sequence[Path], action: str) -> Iterator[dict[str, int]]:
    for text in (text for log in logs for text in log.read_text().splitlines()):
        if f'"{action}"' not in text:
            continue
        try:
            line = json.loads(text)
        except ValueError:
            continue  # cut short by a kill
        if line.get("action") == action:
            yield line


def count_events(logs: Sequence[Path], action: str) -> int:
    """How often something was logged."""
    return sum(1 for _ in _events(logs, action))


async def longest_recovery_s(dsn: str, blows: Sequence[datetime]) -> float:
    """The longest time from a blow to the next stored evaluation."""
    connection = await asyncpg.connect(dsn)
    try:
        stored = [row["at"] for row in await connection.fetch(ACCEPTED_AT)]
    finally:
        await connection.close()
    waits = [min((at - blow for at in stored if at > blow), default=None) for blow in blows]
    return max((wait.total_seconds() for wait in waits if wait is not None), default=0.0)
