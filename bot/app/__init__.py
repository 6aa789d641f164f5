"""Creates all concrete objects, once, from the settings.

An `Installation` (`installation.py`) opens, in this order: the log (`logs.py`); the database, its
migrations and the store on it, together an `OpenPodium` (`context.py`); the runners (`runners.py`);
a worker that judges the queue with them (`worker.py`); the front ends, Discord and HTTP
(`doors.py`). They are closed in reverse order. A command opens only what it needs. `servers.py`
decides whether a command uses a remote Podium instead, and `doctor.py` checks what is missing here.
"""
