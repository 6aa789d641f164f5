"""The `podium` command with a clock that a test moves: a signal moves its loop forward.

Everything else is the real command. Timers of the loop fire as if the time had passed;
the system clock does not change.
"""

import asyncio
import signal
import sys
import time

from bot.__main__ import main

STEP_S = 5.0
FORWARD = signal.SIGUSR1
_ahead = 0.0


def _forward(*_: object) -> None:
    global _ahead  # noqa: PLW0603 - a signal has nobody else to tell
    _ahead += STEP_S


if __name__ == "__main__":
    signal.signal(FORWARD, _forward)
    setattr(asyncio.BaseEventLoop, "time", lambda _: time.monotonic() + _ahead)  # noqa: B010
    sys.argv[0] = "podium"
    main()
