"""`/docs`: how to submit with each front end; `/docs/verdicts`: what each verdict means."""

from fastapi import APIRouter, Request, Response

from bot.domain.board import Board, Viewer
from bot.services.lookup import visible_boards
from bot.web import auth, rendering
from bot.web.context import WebContext, address_of, context_of, is_here
from runners.contract.verdict import VERDICT_WORDS, Verdict
from runners.languages import specs

router = APIRouter()


@router.get("/docs")
async def docs(request: Request, viewer: auth.AnyViewer) -> Response:
    """Show how to submit, and what the numbers mean."""
    context = context_of(request)
    board = await _example(context, viewer)
    values = {
        "title": "How to submit",
        "board": "BOARD" if board is None else board.name,
        "gpu": "GPU" if board is None else board.gpus[0],
        "has_discord": any(line.name == "discord" for line in context.connections),
        "base": address_of(request),
        "is_here": is_here(request),
        "languages": specs(),
    }
    return await rendering.page(request, viewer, "docs.html", values)


_VERDICTS = {
    Verdict.PASSED: (
        "Every output was right, and the judge's own clock confirmed every time.",
        "Nothing to mend. In a ranked run, the time counts on the board.",
    ),
    Verdict.WRONG_ANSWER: (
        "An output differs from that of the reference in value, shape, type or device.",
        "The report names the test and the largest difference. Accumulate in a more precise type.",
    ),
    Verdict.INVALID_SUBMISSION: (
        "The file does not define the function that the task asks for, or it returns no tensors.",
        "Begin with the board's template and keep the function's name and arguments.",
    ),
    Verdict.BUILD_FAILED: (
        "The source does not parse, import or compile.",
        "The message names the line and the first error. Use only modules that the task offers.",
    ),
    Verdict.CRASHED: (
        "The kernel raised an exception, or its process ended.",
        "The message names the line. On a GPU, check sizes that are no multiple of the block.",
    ),
    Verdict.TIMED_OUT: (
        "The task's time limit passed.",
        "Compile once, not at each call, and look for endless loops and waits.",
    ),
    Verdict.MEMORY_EXCEEDED: (
        "The run needed more memory than the limit.",
        "Reuse buffers, free what is no longer needed, and do not copy the inputs.",
    ),
    Verdict.OUTPUT_EXCEEDED: (
        "The run wrote more to its output or to the disk than the limit.",
        "Remove prints and files.",
    ),
    Verdict.DISALLOWED: (
        "The run broke a rule of the sandbox, such as a process left behind after a call.",
        "Start no processes that outlive a call, and use neither the network nor files elsewhere.",
    ),
    Verdict.TIMING_REJECTED: (
        "The time that the submission claims is below what the judge's own clock allows.",
        "Finish all work on the stream of the call before it returns.",
    ),
    Verdict.AUDIT: (
        "The time is below the least that the card allows.",
        "It is not ranked until it is reviewed. Check that each call computes every output.",
    ),
    Verdict.TASK_ERROR: (
        "The task's own code failed. Your submission is not at fault.",
        "Tell the board's creator; submit again once a new task version is published.",
    ),
}
"""What each verdict means, and how to mend it."""


@router.get("/docs/verdicts")
async def verdicts(request: Request, viewer: auth.AnyViewer) -> Response:
    """Explain every verdict by the name that reports use."""
    explained = [(VERDICT_WORDS[each], *words) for each, words in _VERDICTS.items()]
    values = {"title": "Verdicts", "verdicts": explained}
    return await rendering.page(request, viewer, "verdicts.html", values)


async def _example(context: WebContext, viewer: Viewer) -> Board | None:
    """Return a board for the examples, an open one if there is any."""
    boards = await visible_boards(context.store, viewer)
    now = context.clock.now()
    return next((each for each in boards if each.is_open(now)), boards[0] if boards else None)
