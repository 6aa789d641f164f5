"""Chooses the seat that a task's device asks for."""

from contextlib import AbstractContextManager

from runners.harness.arena import Plan
from runners.harness.cuda.seat import device_seat
from runners.harness.seat import Seat, host_seat
from runners.harness.session import Session
from runners.harness.values import Node


def take_seat(session: Session, room: Plan, expected: Node | None) -> AbstractContextManager[Seat]:
    """A fresh candidate with room for inputs like `room` and outputs like `expected`."""
    return device_seat(session, room, expected) if session.on_gpu else host_seat(session, room)
