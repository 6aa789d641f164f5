import pytest

from bot.domain.scoring import pool_of


@pytest.mark.parametrize(
    ("worker", "call", "pool"),
    [
        ("worker-1a2b", "local_process/7", "local"),
        ("worker-1a2b", "modal_app/fc-1/2", "modal"),
        ("box:0123abcd", "local_process/7", "box"),
        ("box:0123abcd", None, "box"),
        ("box:0123abcd", "modal_app/fc-1", "box modal"),
        ("worker-1a2b", None, ""),
        (None, None, ""),
    ],
)
def test_a_pool_is_named_by_its_runner_or_its_agent(
    worker: str | None, call: str | None, pool: str
) -> None:
    assert pool_of(worker, call) == pool
