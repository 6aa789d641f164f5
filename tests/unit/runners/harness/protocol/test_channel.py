from bisect import bisect_left

import pytest
from pydantic import ValidationError

from runners.harness.protocol.arena import compact_description
from runners.harness.protocol.channel import (
    FAILURES,
    FRAME_MAX,
    HANDSHAKE,
    CandidatePid,
    CandidateReady,
    CandidateReply,
    CandidateRequest,
    Operation,
    Status,
    encode,
    has_room_for,
    pair,
)
from runners.harness.protocol.scalars import placeholders
from runners.harness.protocol.values import ScalarNode


def test_frames_keep_their_borders() -> None:
    ours, theirs = pair()
    with ours, theirs:
        ours.sendall(b"one")
        ours.sendall(b"two")

        assert [theirs.recv(100), theirs.recv(100)] == [b"one", b"two"]


@pytest.mark.parametrize(
    "order",
    [
        CandidateRequest(operation=Operation.BUILD),
        CandidateRequest(operation=Operation.RUN, value=ScalarNode()),
    ],
)
def test_an_order_survives_the_wire(order: CandidateRequest) -> None:
    assert CandidateRequest.model_validate_json(encode(order)) == order


def test_a_frame_that_is_too_long_is_not_sent() -> None:
    value = ScalarNode(value="x" * FRAME_MAX)

    with pytest.raises(ValueError, match="at most 65536"):
        encode(CandidateRequest(operation=Operation.RUN, value=value))


@pytest.mark.parametrize("value", [0.0, 1 / 3, -5e-324])
def test_an_output_has_room_whatever_its_floats_are(value: float) -> None:
    def fits(count: int) -> bool:
        return has_room_for(compact_description([value] * count))

    most = bisect_left(range(4000), 1, key=lambda count: not fits(count)) - 1
    longest = compact_description([-5e-324 / 3 - 2.0**-1022 / 3] * most)
    order = CandidateRequest(operation=Operation.EXPECT, value=placeholders(longest))

    assert len(encode(CandidateReply(status=Status.DONE, output=longest))) <= FRAME_MAX
    assert len(encode(order)) <= FRAME_MAX


def test_greetings_are_told_apart() -> None:
    welcome = CandidateReady(layers=("seccomp",), missing={"landlock": "old kernel"})

    assert HANDSHAKE.validate_json(encode(CandidatePid(pid=7))) == CandidatePid(pid=7)
    assert HANDSHAKE.validate_json(encode(welcome)) == welcome


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"null",
        b'{"status":"passed"}',
        b'{"status":"done","claimed_ns":-1}',
        b'{"status":"done","claimed_cpu_ns":-1}',
        b'{"status":"done","claimed_ns":1e999}',
        b'{"status":"done","claimed_ns":NaN}',
        b'{"status":"done","verdict":"passed"}',
        b'{"status":"done","message":"' + b"x" * 3000 + b'"}',
        b'{"status":"done","output":{"kind":"scalar","value":' + b"9" * 60_000 + b"}}",
        b'{"status":"done","output":' + b'{"kind":"list","items":[' * 2000 + b"]}" * 2000 + b"}",
    ],
)
def test_a_reply_outside_the_form_is_refused(frame: bytes) -> None:
    with pytest.raises(ValidationError):
        CandidateReply.model_validate_json(frame)


def test_a_plain_reply_is_understood() -> None:
    assert CandidateReply.model_validate_json(b'{"status":"done"}') == CandidateReply(
        status=Status.DONE
    )


def test_every_status_but_done_has_its_verdict() -> None:
    assert set(FAILURES) == set(Status) - {Status.DONE}
    assert len(set(FAILURES.values())) == len(FAILURES)
