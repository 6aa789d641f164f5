"""Programs in Python that are forked where torch is imported, in place of being executed."""
