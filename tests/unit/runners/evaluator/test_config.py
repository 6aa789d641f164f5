from types import SimpleNamespace

import pytest

from runners.evaluator import EvaluatorConfig


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout": 0}, {"timeout": 3601}, {"attempts": 0}, {"rounds": 0}, {"cache_size": -1},
        {"max_concurrency": 0}, {"queue_timeout_s": 0}, {"secret": b"short"},
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"least|secret|at most"):
        EvaluatorConfig(**wrong)  # type: ignore[arg-type]


def test_every_configuration_has_a_secret_of_its_own_that_is_not_shown() -> None:
    one, other = EvaluatorConfig(), EvaluatorConfig()
    assert one.secret != other.secret
    assert "secret" not in repr(one)


def test_one_of_ours_replaces_another() -> None:
    other = EvaluatorConfig(gpu_type="H100")
    assert EvaluatorConfig().updated(other) is other


def test_a_modal_configuration_changes_the_time_and_not_the_gpu() -> None:
    modal = SimpleNamespace(enabled=True, gpu_type="A100", timeout=60, return_exceptions=False)
    ours = EvaluatorConfig(gpu_type="H100", secret=b"s" * 32)
    updated = ours.updated(modal)
    assert (updated.gpu_type, updated.timeout) == ("H100", 60)
    assert updated.return_exceptions is False
    assert updated.secret == ours.secret
