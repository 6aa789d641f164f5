import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from runners.backends.modal_app import container
from runners.backends.modal_app.container import ContainerRequest, ContainerResponse
from runners.contract.verdict import Verdict
from tests.doubles.evaluating import ENDLESS, RIGHT, make_request

pytestmark = pytest.mark.slow


def answer(order: ContainerRequest) -> ContainerResponse:
    return ContainerResponse.model_validate_json(container.evaluate(order.model_dump_json()))


def ordered(source: str, limit_s: float = 60.0) -> ContainerRequest:
    return ContainerRequest(request=make_request(source), limit_s=limit_s, asked_at=time.time())


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """See that no harness is left but those that other tests of this process share."""
    before = harnesses()
    yield
    assert harnesses() <= before


def harnesses() -> set[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    running = [each for each in children if each.status() != psutil.STATUS_ZOMBIE]
    return {each for each in running if "runners.harness" in " ".join(each.cmdline())}


def test_an_order_without_a_request_asks_what_there_is() -> None:
    said = answer(ContainerRequest(asked_at=time.time()))
    assert said.ready is not None
    assert said.ready.harness_version
    assert said.evaluation is None


def test_a_request_is_evaluated_once_and_what_it_took_is_told() -> None:
    said = answer(ordered(RIGHT))
    assert said.evaluation is not None
    assert said.evaluation.verdict is Verdict.PASSED
    assert 0 < said.ready_s < said.used_s
    assert not said.cold


def test_an_order_from_before_the_container_was_there_had_a_cold_start() -> None:
    said = answer(ContainerRequest(asked_at=time.time() - 3600))
    assert said.cold
    assert said.waited_s >= 3600


def test_a_harness_over_its_limit_is_killed_and_that_is_an_error() -> None:
    began = time.monotonic()
    said = answer(ordered(ENDLESS, limit_s=1.0))
    assert said.evaluation is None
    assert said.error is not None
    assert "did not answer within 1 s" in said.error
    assert time.monotonic() - began < 30


def test_a_harness_that_cannot_begin_is_an_error_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no torch here >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    said = answer(ordered(RIGHT))
    assert said.error is not None
    assert "ended before it answered" in said.error
    assert "no torch here" in said.error


def test_a_harness_gets_nothing_of_the_containers_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MODAL_TASK_ID", "ta-1")
    given = container._environment(2)
    assert "MODAL_TASK_ID" not in given
    assert given["CUDA_VISIBLE_DEVICES"] == "0,1"
