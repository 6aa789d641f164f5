"""Parses untrusted text in a separate process with limits on time and memory.

Some texts take minutes to parse, or more memory than the machine has, and a running parser cannot
be interrupted: its process is killed. The process has no environment, no open file and no secret.
It is reused, so that only the first call waits for its imports.
"""

from bot.services.apart.place import Apart, BusyError, TooHardError

__all__ = ["Apart", "BusyError", "TooHardError"]
