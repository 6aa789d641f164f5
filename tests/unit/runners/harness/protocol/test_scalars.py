"""Tests of scalars that are sent apart from the structure of an input."""

import pytest
import torch

from runners.harness.protocol import scalars
from runners.harness.protocol.arena import lay_out
from runners.harness.protocol.channel import FRAME_MAX, CandidateRequest, Operation
from runners.harness.protocol.values import ScalarNode, restore, tensors

VALUE = {"b": (True, 7, 0.1, None), 3: [torch.ones(2), "text", {"inner": {}}]}


def _request(value: object) -> CandidateRequest:
    return CandidateRequest(operation=Operation.RUN, value=lay_out(value).node)


def test_a_structure_without_its_scalars_tells_nothing_of_them() -> None:
    other = {"x": (False, -1, 9.5, None), 4: [torch.ones(2), "more", {"outer": {}}]}
    (blank, frame), (as_well, other_frame) = (
        scalars.withheld(_request(each), ()) for each in (VALUE, other)
    )
    assert blank == as_well
    assert frame != other_frame
    assert blank.withheld


def test_with_their_frame_the_value_is_as_it_was() -> None:
    order, frame = scalars.withheld(_request(VALUE), ())
    assert order.value is not None
    restored = restore(order.value, lambda _: torch.ones(2))
    found = scalars.filled(order.value, frame, restored)
    assert str(found) == str(VALUE)
    assert [*map(type, found["b"])] == [bool, int, float, type(None)]


def test_known_scalars_are_sent_with_the_request() -> None:
    node = lay_out((torch.ones(1), 1)).node
    order = CandidateRequest(operation=Operation.RUN, value=node)
    for known in (None, [1]):
        assert scalars.withheld(order, known) == (order, b"")
    for other in ([True], [1.0], [2], []):
        assert scalars.withheld(order, other)[1] == b"[1]"


def test_tensors_alone_have_no_frame() -> None:
    order = _request((torch.ones(1), [torch.zeros(2)]))
    assert scalars.withheld(order, ()) == (order, b"")


def test_a_frame_has_an_end() -> None:
    with pytest.raises(ValueError, match="bytes of scalars"):
        scalars.withheld(_request("x" * FRAME_MAX), ())


@pytest.mark.parametrize(("value", "found"), [("a", True), ({"a": 1}, True), ([(1, None)], False)])
def test_a_text_is_found_wherever_it_is(value: object, found: bool) -> None:  # noqa: FBT001
    assert scalars.has_text(value) is found


def test_a_request_without_its_structure_tells_nothing() -> None:
    """From lengths a candidate planned its work, and where the seed decides them computed it."""
    whole = _request((torch.ones(4), [1, 2]))
    order, frame = scalars.withheld(whole, (), whole=True)
    assert order == CandidateRequest(operation=Operation.RUN, withheld=True)
    assert CandidateRequest.model_validate_json(frame) == whole


def test_placeholders_are_as_long_as_the_scalars_that_they_stand_for() -> None:
    value = {"a": [1.5, -7, 10**40, True], 3: (torch.ones(2), "text", None)}
    node = _request(value).value or ScalarNode()
    found = scalars.placeholders(node)

    assert tensors(found) == ()
    restored = restore(found, lambda _: torch.zeros(0))
    assert [*map(type, restored["a"])] == [float, int, int, bool]
    assert restored["a"][2] > 10**40
    assert restored[3] == (None, "xxxx", None)
    assert not set(scalars.of(found)) & {(1.5).hex(), -7, 10**40, "text"}


def test_a_whole_request_in_the_window_has_an_end() -> None:
    with pytest.raises(ValueError, match="a frame of"):
        scalars.withheld(_request("x" * FRAME_MAX), (), whole=True)
