import pytest

from runners.harness.channel import Reply, Status
from runners.harness.exchange import Exchange


@pytest.mark.parametrize(
    ("late", "moved", "spoiled"),
    [(False, False, False), (True, False, True), (False, True, True), (True, True, True)],
)
def test_a_call_that_was_not_made_as_it_was_rehearsed_is_spoiled(
    *, late: bool, moved: bool, spoiled: bool
) -> None:
    exchange = Exchange(1.0, Reply(status=Status.DONE), late=late, moved=moved)

    assert exchange.spoiled is spoiled
