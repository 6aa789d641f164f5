"""Whether the GPUs of a slot are fit for an evaluation, as its harness says."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from runners.contract.runner import OutOfService
from runners.slots.harness import UnfitError

_log = logging.getLogger(__name__)


class Fitness:
    """Of one slot; `cards` are its GPUs by UUID or number, where they are known."""

    def __init__(self, kind: str, cards: tuple[str, ...] = ()) -> None:
        self.unfit = ""
        """Why the slot is out of service; empty when it is not."""
        self._kind = kind
        self._cards = cards

    @property
    def outages(self) -> tuple[OutOfService, ...]:
        """Its cards, while they are out of service."""
        cards = self._cards or (self._kind,)
        return tuple(
            OutOfService(gpu=self._kind, card=card, why=self.unfit) for card in cards if self.unfit
        )

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Take note of what becomes of using the slot."""
        try:
            yield
        except UnfitError as error:
            if not self.unfit:
                _log.error("%s is out of service: %s", self._kind, error)
            self.unfit = str(error)
            raise
        if self.unfit:
            _log.warning("%s is back in service", self._kind)
        self.unfit = ""
