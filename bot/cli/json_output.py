"""The JSON that commands print with `--json`; its keys are stable."""

from dataclasses import asdict

from bot.domain.competition import Competition, CompetitionStandings
from bot.domain.confirmation import Confirmation
from bot.domain.finals import Final
from bot.domain.leaderboard import BoardStandings
from bot.domain.noise import too_noisy
from bot.domain.publication import PublishedDraft
from bot.domain.records import BackupContents, FailedRun, HistoryEntry
from bot.domain.scoring import ScoreValue, Standing, score
from bot.domain.status import JobStatus, SubmissionStatus
from bot.domain.tasks.lint import TaskReport
from bot.domain.times import speed_up_of, speed_up_over, uncertain_ratio
from bot.reports.competition import leaderboard_names
from runners.contract.evaluation import CaseResult, Evaluation, Timing
from runners.contract.task import Mode, TaskDefinition

Json = dict[str, object]


def evaluation_json(task: TaskDefinition, evaluation: Evaluation) -> Json:
    """Return what `podium judge --json` prints; `compiled` is null except for device code."""
    compiled = evaluation.compiled
    value = score(task, evaluation)
    return {
        "verdict": evaluation.verdict.value,
        "mode": evaluation.mode.value,
        "task": evaluation.task,
        "score_ns": None if value is None else value.time_ns,
        "too_noisy": [case.spec for case in too_noisy(evaluation)],
        "cases": [case_json(case) for case in evaluation.cases],
        "compiled": compiled and compiled.model_dump(mode="json"),
        "environment": evaluation.environment.model_dump(mode="json"),
        "isolation": evaluation.isolation.model_dump(mode="json"),
        "wall_s": evaluation.wall_s,
    }


def case_json(case: CaseResult) -> Json:
    """Return one case; without a measurement, numbers are null and samples empty."""
    measured = case.measurement
    ratio = None if measured is None else uncertain_ratio(measured)
    faster = None if ratio is None else speed_up_of(ratio)
    return {
        "spec": case.spec,
        "kind": case.kind.value,
        "status": case.status.value,
        "message": case.message,
        "time_ns": None if measured is None else measured.time_ns,
        "half_width_ns": None if measured is None else measured.half_width_ns,
        "bound_ns": None if measured is None else measured.bound_ns,
        "resolution_ns": None if measured is None else measured.resolution_ns,
        "claimed_ns": None if measured is None else measured.claimed_ns,
        "rounds": None if measured is None else measured.rounds,
        "samples": [] if measured is None else [list(each) for each in measured.samples],
        "left_out": None if measured is None else measured.left_out,
        "vs_reference": None if faster is None else faster.factor,
        "vs_reference_low": None if faster is None else faster.low,
        "vs_reference_high": None if faster is None else faster.high,
    }


def competition_json(
    competition: Competition, standings: CompetitionStandings | None = None
) -> Json:
    """Return a competition as JSON, with its overall ranking if that is given."""
    closes = competition.closes_at
    body: Json = {
        "competition": competition.name,
        "opens_at": competition.opens_at.isoformat(),
        "closes_at": None if closes is None else closes.isoformat(),
        "boards": [each.name for each in competition.boards],
    }
    if standings is not None:
        names = leaderboard_names(standings)
        body["standings"] = [
            {
                "rank": each.rank,
                "person": each.person_name,
                "total": each.total,
                "points": dict(zip(names, each.points, strict=True)),
            }
            for each in standings.entries
        ]
    return body


def standings_json(leaderboard: BoardStandings) -> Json:
    """Return one leaderboard."""
    deadline = leaderboard.board.deadline
    return {
        "board": leaderboard.board.name,
        "gpu": leaderboard.gpu,
        "task_version": leaderboard.version,
        "version_note": leaderboard.note,
        "deadline": None if deadline is None else deadline.isoformat(),
        "pool": leaderboard.board.pool_for(leaderboard.gpu, Mode.RANKED),
        "speed_of_light_ns": leaderboard.speed_of_light_ns,
        "timing": (Timing.IN_PROCESS if leaderboard.in_process else Timing.OUTSIDE).value,
        "reference": _reference_json(leaderboard.reference),
        "reference_failure": leaderboard.reference_failure,
        "entries": [_entry_json(entry, leaderboard.reference) for entry in leaderboard.entries],
        "absent": [_absent_json(refusal) for refusal in leaderboard.refused],
        "pending": [_pending_json(each) for each in leaderboard.pending],
        "final": None if leaderboard.final is None else final_json(leaderboard.final),
    }


def _pending_json(found: Confirmation) -> Json:
    """Return a run that is not ranked until it is confirmed."""
    return {
        "person": found.person_name,
        "time_ns": None if found.held is None else found.held.time_ns,
        "half_width_ns": None if found.held is None else found.held.half_width_ns,
        "resolution_ns": None if found.held is None else found.held.resolution_ns,
        "place": found.place,
        "submission": found.submission,
    }


def final_json(final: Final) -> Json:
    """Return a final; its rows are null until it has ended."""
    return {
        "gpu": final.gpu,
        "top": final.top,
        "compared": final.compared,
        "comparison_s": final.comparison_s,
        "left": None if final.entries is None or final.rows is not None else final.left,
        "ended_at": None if final.ended_at is None else final.ended_at.isoformat(),
        "rows": None if final.rows is None else [asdict(each) for each in final.rows],
    }


def _reference_json(value: ScoreValue | None) -> Json | None:
    """Return the time of the task's own reference, null while it is unknown."""
    if value is None:
        return None
    return asdict(value)


def _entry_json(entry: Standing, reference: ScoreValue | None) -> Json:
    faster = speed_up_over(reference, entry.score)
    return {
        "rank": entry.rank,
        "person": entry.score.person_name,
        **asdict(entry.score.value),
        "vs_reference": None if faster is None else faster.factor,
        "vs_reference_low": None if faster is None else faster.low,
        "vs_reference_high": None if faster is None else faster.high,
        "vs_reference_in_turn": entry.score.vs_reference is not None,
        "attempts": entry.attempts,
        "submission": entry.score.submission,
        "submitted_at": entry.score.submitted_at.isoformat(),
        "pool": entry.score.pool,
    }


def _absent_json(refusal: FailedRun) -> Json:
    return {
        "person": refusal.person_name,
        "verdict": refusal.verdict,
        "message": refusal.message,
        "submission": refusal.submission,
        "submitted_at": refusal.submitted_at.isoformat(),
    }


def task_report_json(report: TaskReport) -> Json:
    """Return one task, checked on one GPU type."""
    findings = [
        {
            "level": each.level.value,
            "file": each.file,
            "message": each.message,
            "comparison": None if each.comparison is None else asdict(each.comparison),
        }
        for each in report.findings
    ]
    return {
        "task": report.task,
        "gpu": report.gpu,
        "ok": report.ok,
        "dry_run": report.was_run,
        "obstacle": report.obstacle,
        "grading": report.grading,
        "findings": findings,
    }


def published_json(draft: PublishedDraft) -> Json:
    """Return one published task; `dry_run` has the GPU types on which it was just run."""
    published = draft.published
    deadline = published.board.deadline
    return {
        "board": published.board.name,
        "gpus": list(published.board.gpus),
        "task_version": published.version,
        "version_note": published.note,
        "change": published.change.value,
        "deadline": None if deadline is None else deadline.isoformat(),
        "pools": dict(published.board.pins),
        "grading": draft.grading,
        "dry_run": [report.gpu for report in draft.reports if report.was_run],
    }


def status_json(status: SubmissionStatus) -> Json:
    """Return one submission with its jobs."""
    submission = status.submission
    return {
        "submission": submission.id,
        "board": status.board.name,
        "file": submission.file_name,
        "mode": submission.mode.value,
        "state": status.state.value,
        "created_at": submission.created_at.isoformat(),
        "jobs": [_job_json(job) for job in status.jobs],
    }


def _job_json(status: JobStatus) -> Json:
    evaluation = status.evaluation
    return {
        "gpu": status.job.gpu,
        "state": status.job.state.value,
        "attempt": status.job.attempt,
        "stage": status.stage,
        "done": status.done,
        "total": status.total,
        "error": status.job.error,
        "waits": status.job.waits,
        "verdict": None if evaluation is None else evaluation.verdict.value,
        "message": "" if evaluation is None else evaluation.message,
        "gpu_seconds": None if evaluation is None else evaluation.gpu_s,
        "cost": status.cost,
        "confirmation": _confirmation_json(status.confirmation),
        "lost_place": status.lost and asdict(status.lost),
        "ranks": status.ranks and asdict(status.ranks),
        "cases": [] if evaluation is None else [case_json(case) for case in evaluation.cases],
    }


def _confirmation_json(found: Confirmation | None) -> Json | None:
    """Return the comparison with the holder of a place, null if there is none."""
    if found is None:
        return None
    return {
        "state": found.state.value,
        "place": found.place,
        "rival": found.rival,
        "ratio": None if found.ratio is None else found.ratio.ratio,
        "half_width": None if found.ratio is None else found.ratio.half_width,
        "reason": found.reason,
    }


def history_json(entry: HistoryEntry) -> Json:
    """Return one submission of a history."""
    submission = entry.submission
    return {
        "submission": submission.id,
        "board": entry.board_name,
        "task_version": entry.version,
        "file": submission.file_name,
        "mode": submission.mode.value,
        "state": submission.state.value,
        "created_at": submission.created_at.isoformat(),
        "results": [
            {
                "gpu": result.gpu,
                "verdict": result.verdict.value,
                "time_ns": None if result.score is None else result.score.time_ns,
                "half_width_ns": None if result.score is None else result.score.half_width_ns,
                "resolution_ns": None if result.score is None else result.score.resolution_ns,
                "claimed_ns": None if result.score is None else result.score.claimed_ns,
                "confirmation": result.confirmation and result.confirmation.value,
                "lost_to": result.lost_to,
                "exclusion": result.exclusion and result.exclusion.value,
            }
            for result in entry.results
        ],
    }


def backup_json(made: BackupContents) -> Json:
    """Return the contents of a backup that was written or restored."""
    return {"made_at": made.made_at.isoformat(), "podium": made.podium, "rows": dict(made.rows)}
