"""A runner that knows what is right of the task which `podium task new` writes."""

from typing_extensions import override

from runners.backends import fake
from runners.contract.evaluation import EvaluationRequest
from runners.contract.runner import CallId
from tests.doubles.factories import make_capabilities
from tests.doubles.task_zips import RIGHT


def code_of(source: str) -> str:
    """What stands beneath the heading, which names a board."""
    return source.partition("\n")[2]


class Judge(fake.FakeRunner):
    """Finds the scaffold's right solution right for any board, and everything else wrong."""

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        verdict = "passed" if code_of(request.source) == code_of(RIGHT) else "wrong_answer"
        source = f"# fake: verdict={verdict}\n{request.source}"
        return await super().start(request.model_copy(update={"source": source}))


def make_judge() -> Judge:
    """One with a slot of the CPU."""
    return Judge("fake", make_capabilities())
