"""`podium judge`: one evaluation right here, without a database or a server."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bot.app.context import cap_rounds
from bot.cli.context import AsJson, CommandLine, command_line
from bot.cli.errors import ExitCode
from bot.cli.files import Root, read_submission, save_files, saved_line
from bot.cli.follow import ProgressLines, evaluate
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
class _Order:
    task: TaskDefinition
    source: str
    mode: Mode
    gpu: str | None
    rounds: int | None


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
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of timed rounds")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Save profiler reports to this folder (profile mode)")
    ] = None,
    root: Root = None,
    as_json: AsJson = False,
) -> int:
    """Judge one file: exit code 0 passed, 1 not passed, 2 usage error, 3 internal error."""
    line = command_line(ctx)
    definition = parse_task(line.installation.read_task(task, root))
    if grader is not None:
        definition = definition.model_copy(update={"grader": grader})
    source = acceptance.source_text(read_submission(submission))
    parse_header(source)  # refused here like on a leaderboard
    acceptance.check_language(submission.name, definition.name, definition)
    order = _Order(definition, source, mode, gpu, rounds)
    evaluation = asyncio.run(_judge(line, order))
    shape = evaluation_json(definition, evaluation)
    line.answer(evaluation_report(evaluation), shape, as_json=as_json)
    if as_json and evaluation.message:
        line.say(evaluation.message)
    if save is not None:
        line.say(saved_line(save_files([(each.name, each) for each in evaluation.files], save)))
    return ExitCode.PASSED if evaluation.verdict is Verdict.PASSED else ExitCode.VERDICT


async def _judge(line: CommandLine, order: _Order) -> Evaluation:
    async with line.installation.runners() as runners:
        with ProgressLines(line.err) as lines:
            return await _evaluate(runners, order, lines)


async def _evaluate(runners: Sequence[Runner], order: _Order, lines: ProgressLines) -> Evaluation:
    lines.tell(order.task.name, Text("starting the judge"))
    offers = [(runner, await runner.capabilities()) for runner in runners]
    usual = _usual_gpu([offer for _, offer in offers], order.task)
    gpu = gpu_type(order.gpu or usual)
    able = [runner for runner, offer in offers if not missing(offer, order.task, gpu)]
    if not able:
        raise _nowhere([offer for _, offer in offers], order.task, gpu)
    policy = None if order.rounds is None else cap_rounds(order.mode, order.rounds)
    request = EvaluationRequest(
        request_id=secrets.token_hex(8),
        task=order.task,
        source=order.source,
        mode=order.mode,
        gpu=gpu,
        rounds=policy,
    )
    return await evaluate(able[0], request, lines)


def _usual_gpu(offers: list[Capabilities], task: TaskDefinition) -> str:
    """Return the first GPU type here; the CPU for CPU tasks, or when there is no GPU."""
    gpus = [gpu for offer in offers for gpu in offer.gpus if gpu != CPU]
    return CPU if task.device is Device.CPU or not gpus else gpus[0]


def _nowhere(offers: list[Capabilities], task: TaskDefinition, gpu: str) -> UserError:
    gpus = {name for offer in offers for name in offer.gpus}
    if gpu not in gpus:
        return unknown_name("gpu", gpu, gpus)
    lacks = min((missing(offer, task, gpu) for offer in offers), key=len)
    return UserError(
        "cannot-judge-here", f"{task.name} needs {', '.join(lacks)}; not available here"
    )
