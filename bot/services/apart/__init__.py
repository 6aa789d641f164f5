"""Reads what strangers wrote in a process of its own, within a limit of time and of memory.

Some texts take minutes to parse, or more memory than there is, and nothing can stop a parser in its
midst: its process is killed. It has no environment, no open file and no secret. It lives on between
two readings, so that only the first one waits for its imports.
"""

from bot.services.apart.place import Apart, BusyError, TooHardError

__all__ = ["Apart", "BusyError", "TooHardError"]
