"""A language is added by one file: a task in it is published, submitted to and judged."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.publication import PublishRequest
from bot.domain.submission import SubmissionRequest
from bot.domain.tasks.bundle import TaskBundle, solutions
from bot.domain.tasks.task_file import parse_task
from bot.domain.tasks.template import template_of
from bot.services.publishing.publish import publish
from bot.services.submissions import submit
from bot.web.markup import highlighted
from runners import languages
from runners.contract.evaluation import CPU, EvaluationRequest, Isolation
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from runners.harness import server
from tests.doubles import candidates
from tests.doubles.clock import ManualClock
from tests.doubles.judging import FEW_ROUNDS
from tests.doubles.memory_store.store import MemoryStore
from tests.doubles.place import make_place
from tests.unit.runners.harness.conftest import Judge, judge, progress, template

__all__ = ["judge", "progress", "template"]
FOLDER = Path(__file__).parents[1] / "doubles" / "languages"
TASK = """
lang: sh
description: Double every number.
files:
  - {name: submission.sh, source: "@SUBMISSION@"}
  - {name: reference.py, source: reference.py}
templates:
  Shell: template.sh
tests:
  - {size: 3, seed: 1}
benchmarks:
  - {size: 4, seed: 2}
gpus: [CPU]
"""
REFERENCE = """
import torch

def generate_input(size, seed):
    return torch.randint(100, (size,), generator=torch.Generator().manual_seed(seed))

def ref_kernel(data):
    return data * 2

def check_implementation(data, output):
    return torch.equal(output, ref_kernel(data))
"""
DOUBLES = 'for each in "$@"; do echo $((each * 2)); done\n'
FILES = {
    "task.yml": TASK,
    "reference.py": REFERENCE,
    "template.sh": "# double them\necho 0\n",
    "solutions/correct/doubles.sh": DOUBLES,
    "solutions/wrong/triples.sh": DOUBLES.replace("2", "3"),
}


@pytest.fixture(autouse=True)
def _shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The added language, as if its file lay among the others."""
    monkeypatch.setattr(languages, "__path__", [*languages.__path__, str(FOLDER)])
    languages.languages.cache_clear()
    languages.languages()  # as a server does before candidates are forked
    yield
    sys.modules.pop("runners.languages.shell")
    languages.languages.cache_clear()


@pytest.fixture
def fork_template(_shell: None) -> candidates.Fork:
    """Candidates know the language too."""
    return candidates.fork_own_template


def bundle() -> TaskBundle:
    return TaskBundle({f"double/{path}": text.encode() for path, text in FILES.items()}, "double")


async def submitted(source: str, file_name: str = "kernel.sh") -> EvaluationRequest:
    """What a runner is asked when somebody submits to the published task."""
    clock = ManualClock()
    place = await make_place(MemoryStore(clock), clock)
    task = parse_task(bundle())
    await publish(place.store, clock, PublishRequest(place.ada), task)
    taken = await submit(
        place.store,
        clock,
        SubmissionRequest(Viewer(place.ada), file_name, source.encode(), Mode.RANKED, "double"),
    )
    return EvaluationRequest(
        request_id="added",
        task=task,
        source=await place.store.submissions.source(taken.id),
        mode=Mode.RANKED,
        gpu=CPU,
        rounds=FEW_ROUNDS,
    )


async def test_a_submission_in_it_is_judged(judge: Judge) -> None:
    found = judge(await submitted(DOUBLES))
    assert found.verdict is Verdict.PASSED, found.message
    assert found.cases[-1].measurement is not None


async def test_a_wrong_one_gets_its_verdict(judge: Judge) -> None:
    assert judge(await submitted(DOUBLES.replace("2", "3"))).verdict is Verdict.WRONG_ANSWER
    nothing = judge(await submitted("true\n"))
    assert (nothing.verdict, nothing.message) == (
        Verdict.INVALID_SUBMISSION,
        "the script prints nothing",
    )


async def test_a_file_of_another_language_is_refused() -> None:
    with pytest.raises(UserError, match=r"accepts Shell; write it as a \.sh file"):
        await submitted(DOUBLES, "kernel.py")
    with pytest.raises(UserError, match=r"use a name such as kernel\.sh"):
        await submitted(DOUBLES, "kernel.bash")


async def test_every_part_of_podium_knows_it() -> None:
    task = parse_task(bundle())
    assert "sh" in server.capabilities(Isolation(outer="none")).languages
    assert [each.name for each in solutions(bundle())] == [
        "solutions/correct/doubles.sh",
        "solutions/wrong/triples.sh",
    ]
    assert template_of(task, "double").text.startswith("#!PODIUM leaderboard double\n")
    assert "<span class=" in await highlighted(DOUBLES, "kernel.sh")
    changed = {**FILES, "task.yml": TASK + "config: {sources: [a.cu]}\n"}
    packed = {f"double/{path}": text.encode() for path, text in changed.items()}
    with pytest.raises(UserError, match="'sources' has no effect with lang: sh"):
        parse_task(TaskBundle(packed, "double"))
