"""The report of a checked task: whether it is sound, was run at all, and every finding."""

from bot.domain.task_report import CheckStep, Finding, Level, TaskReport
from bot.reports.blocks import Report, Text, Tone

_TONES = {Level.ERROR: Tone.BAD, Level.WARNING: Tone.PLAIN, Level.INFO: Tone.QUIET}


def task_report(report: TaskReport) -> Report:
    """One line per finding, under the verdict on the whole."""
    lines = tuple(_line(finding) for finding in report.findings)
    if not report.dry_run:
        lines += (Text(f"its solutions were not run: {report.obstacle}", Tone.BAD),)
    return Report(f"{report.task} on {report.gpu}: {_verdict(report)}", lines)


def _verdict(report: TaskReport) -> str:
    if report.errors:
        return "to be mended"
    return "sound" if report.dry_run else "well-formed, but not run"


def _line(finding: Finding) -> Text:
    words = f"{finding.level:<8} {finding.file}: {finding.message}"
    return Text(words, _TONES[finding.level])


def step_line(step: CheckStep, *, with_gpu: bool) -> str:
    """One run of a check in a few words, such as `solutions/correct/fast.py: test 3/5`."""
    state = _state(step)
    words = state if state.startswith(step.name) else f"{step.name}: {state}"
    return f"{step.gpu}: {words}" if with_gpu else words


def _state(step: CheckStep) -> str:
    if step.finding is not None:
        return step.finding.message
    if step.stage is None:
        return "waiting"
    return f"{step.stage} {step.done}/{step.total}" if step.total else step.stage
