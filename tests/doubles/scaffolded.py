"""A runner that knows the right solution of the task that `podium task new` writes."""

from typing_extensions import override

from bot.services.publishing.check import ROUNDS
from runners.backends import fake
from runners.contract.evaluation import EvaluationRequest
from runners.contract.runner import CallId
from runners.contract.task import Grader
from tests.doubles.factories import make_capabilities
from tests.doubles.task_zips import RIGHT


def code_of(source: str) -> str:
    """The source without the header, which names a board."""
    return source.partition("\n")[2]


class Judge(fake.FakeRunner):
    """In a check it accepts the scaffold's right solution for any board, and rejects the rest."""

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        if request.rounds != ROUNDS:
            return await super().start(request)
        verdict = "passed" if code_of(request.source) == code_of(RIGHT) else "wrong_answer"
        source = f"# fake: verdict={verdict}\n{request.source}"
        return await super().start(request.model_copy(update={"source": source}))


class Doubter(Judge):
    """A judge for tasks with their own evaluation, which refuses every solution."""

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        if request.task.grader is Grader.POPCORN:
            source = f"# fake: verdict=wrong_answer\n{request.source}"
            request = request.model_copy(update={"source": source})
            return await fake.FakeRunner.start(self, request)
        return await super().start(request)


def make_judge() -> Judge:
    """A judge with one slot on the CPU."""
    return Judge("fake", make_capabilities())


def make_doubter() -> Doubter:
    """A judge with one slot on the CPU and both graders, which disagree."""
    return Doubter("fake", make_capabilities(graders=tuple(Grader)))
