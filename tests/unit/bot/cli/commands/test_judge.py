"""`podium judge`: what it asks of a runner."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.app.installation import Installation
from bot.cli.app import run
from bot.domain.tasks.scaffold import scaffold
from bot.settings import Settings
from runners.backends import fake
from runners.contract.evaluation import BENCHMARK_ROUNDS, EvaluationRequest, RoundPolicy
from runners.contract.runner import CallId, Runner
from runners.contract.task import Mode


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[EvaluationRequest]:
    """What the one runner of every installation is asked, in a folder with a task and a kernel."""
    runner, requests = fake.create(), list[EvaluationRequest]()
    start = runner.start

    async def recording(request: EvaluationRequest) -> CallId:
        requests.append(request)
        return await start(request)

    monkeypatch.setattr(runner, "start", recording)

    @asynccontextmanager
    async def runners(_: Installation) -> AsyncIterator[Sequence[Runner]]:
        yield [runner]

    monkeypatch.setattr(Installation, "runners", runners)
    monkeypatch.chdir(tmp_path)
    for path, text in scaffold("double").items():
        file = tmp_path / "double" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    Path("kernel.py").write_text("def custom_kernel(data): return data\n", encoding="utf-8")
    return requests


def _judge(*options: str) -> int:
    return run(("judge", "double", "kernel.py", *options), Installation(Settings()))


@pytest.mark.parametrize(
    ("options", "mode", "rounds"),
    [
        ((), Mode.TEST, None),
        (("--quick",), Mode.BENCHMARK, (1,)),
        (("--quick", "--mode", "benchmark", "--rounds", "1"), Mode.BENCHMARK, (1,)),
        (("--mode", "benchmark"), Mode.BENCHMARK, None),
        (("--mode", "ranked", "--rounds", "9"), Mode.RANKED, (5, 8, 9)),
    ],
)
def test_the_options_become_a_mode_and_rounds(
    asked: list[EvaluationRequest],
    options: tuple[str, ...],
    mode: Mode,
    rounds: tuple[int, ...] | None,
) -> None:
    assert _judge(*options) == 0

    (request,) = asked
    assert request.mode is mode
    assert (request.rounds and request.rounds.looks) == rounds
    if mode is Mode.BENCHMARK:
        usual = BENCHMARK_ROUNDS.model_copy(update={"looks": rounds or BENCHMARK_ROUNDS.looks})
        assert RoundPolicy.model_validate(request.round_policy) == usual


@pytest.mark.parametrize("other", [("--mode", "ranked"), ("--mode", "profile"), ("--rounds", "2")])
def test_quick_contradicts_other_modes_and_rounds(
    asked: list[EvaluationRequest], capsys: pytest.CaptureFixture[str], other: tuple[str, ...]
) -> None:
    assert _judge("--quick", *other) == 2

    assert "--quick is --mode benchmark --rounds 1" in capsys.readouterr().err
    assert not asked
