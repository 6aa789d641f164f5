"""The protocol between judge and candidate: frames, descriptions of values, shared memory."""
