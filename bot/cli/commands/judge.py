"""`podium judge`: one evaluation right here, without a database or a server."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bot.app.context import cap_rounds
from bot.cli import files, follow
from bot.cli.context import AsJson, CommandLine, command_line
from bot.cli.errors import ExitCode
from bot.cli.json_output import evaluation_json
from bot.domain import acceptance
from bot.domain.acceptance import parse_header
from bot.domain.errors import UserError, unknown_name
from bot.domain.requirements import missing
from bot.domain.tasks.task_file import parse_task
from bot.reports.blocks import Text
from bot.reports.submission import evaluation_report
from runners.contract.evaluation import CPU, Evaluation, EvaluationRequest
from runners.contract.gpus import gpu_type
from runners.contract.runner import Capabilities, Runner
from runners.contract.task import Device, Grader, Mode, TaskDefinition
from runners.contract.verdict import Verdict


@dataclass(frozen=True, slots=True)
class _JudgeOptions:
    task: TaskDefinition
    source: str
    mode: Mode
    gpu: str | None
    rounds: int | None


_ROUNDS = "Maximum number of timed rounds"
_QUICK = "Only time the benchmarks, in a single round each"


def judge(
    ctx: typer.Context,
    task: Annotated[Path, typer.Argument(help="Task folder or zip")],
    submission: Annotated[Path, typer.Argument(help="File to judge")],
    *,
    mode: Annotated[Mode, typer.Option(help="Evaluation mode")] = Mode.TEST,
    grader: Annotated[
        Grader | None, typer.Option(help="Grader (default: the one the task names)")
    ] = None,
    gpu: Annotated[str | None, typer.Option(help="GPU type, such as H100 or CPU")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help=_ROUNDS)] = None,
    quick: Annotated[bool, typer.Option("--quick", help=_QUICK)] = False,
    save: Annotated[
        Path | None, typer.Option(help="Save profiler reports to this folder (profile mode)")
    ] = None,
    root: files.Root = None,
    as_json: AsJson = False,
) -> int:
    """Judge one file: exit code 0 passed, 1 not passed, 2 usage error, 3 internal error."""
    line = command_line(ctx)
    mode, rounds = _quick(mode, rounds) if quick else (mode, rounds)
    definition = parse_task(line.installation.read_task(task, root))
    if grader is not None:
        definition = definition.model_copy(update={"grader": grader})
    source = acceptance.source_text(files.read_submission(submission))
    parse_header(source)  # raises for every header that a board refuses
    acceptance.check_language(submission.name, definition.name, definition)
    options = _JudgeOptions(definition, source, mode, gpu, rounds)
    evaluation = asyncio.run(_judge(line, options))
    body = evaluation_json(definition, evaluation)
    line.answer(evaluation_report(evaluation), body, as_json=as_json)
    if as_json and evaluation.message:
        line.say(evaluation.message)
    if save is not None:
        line.say(
            files.saved_line(
                files.save_files([(each.name, each) for each in evaluation.files], save)
            )
        )
    return ExitCode.PASSED if evaluation.verdict is Verdict.PASSED else ExitCode.VERDICT


def _quick(mode: Mode, rounds: int | None) -> tuple[Mode, int]:
    """Return the mode and the number of rounds of `--quick`, which fits the other options."""
    if mode not in {Mode.TEST, Mode.BENCHMARK} or rounds not in {None, 1}:
        raise UserError(
            "usage", "--quick is --mode benchmark --rounds 1; leave out other modes and rounds"
        )
    return Mode.BENCHMARK, 1


async def _judge(line: CommandLine, options: _JudgeOptions) -> Evaluation:
    async with line.installation.runners() as runners:
        with follow.ProgressLines(line.err) as lines:
            return await _evaluate(runners, options, lines)


async def _evaluate(
    runners: Sequence[Runner], options: _JudgeOptions, lines: follow.ProgressLines
) -> Evaluation:
    lines.show(options.task.name, Text("starting the judge"))
    offers = [(runner, await runner.capabilities()) for runner in runners]
    default = _default_gpu([offer for _, offer in offers], options.task)
    gpu = gpu_type(options.gpu or default)
    able = [runner for runner, offer in offers if not missing(offer, options.task, gpu)]
    if not able:
        raise _no_runner([offer for _, offer in offers], options.task, gpu)
    policy = None if options.rounds is None else cap_rounds(options.mode, options.rounds)
    request = EvaluationRequest(
        request_id=secrets.token_hex(8),
        task=options.task,
        source=options.source,
        mode=options.mode,
        gpu=gpu,
        rounds=policy,
    )
    return await follow.evaluate(able[0], request, lines)


def _default_gpu(offers: list[Capabilities], task: TaskDefinition) -> str:
    """Return the first GPU type here; the CPU for CPU tasks, or when there is no GPU."""
    gpus = [gpu for offer in offers for gpu in offer.gpus if gpu != CPU]
    return CPU if task.device is Device.CPU or not gpus else gpus[0]


def _no_runner(offers: list[Capabilities], task: TaskDefinition, gpu: str) -> UserError:
    gpus = {name for offer in offers for name in offer.gpus}
    if gpu not in gpus:
        return unknown_name("gpu", gpu, gpus)
    fewest_missing = min((missing(offer, task, gpu) for offer in offers), key=len)
    return UserError(
        "cannot-judge-here", f"{task.name} needs {', '.join(fewest_missing)}; not available here"
    )
