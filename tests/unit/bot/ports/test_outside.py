"""Tests of a door's line to a service."""

from bot.ports.outside import ServiceConnection


def test_a_line_is_down_until_its_door_says_otherwise() -> None:
    line = ServiceConnection("discord")
    assert (line.latency_s, line.is_connected) == (None, False)
    line.measure = lambda: 0.25
    assert (line.latency_s, line.is_connected) == (0.25, True)
