"""A task that was handed in: its check, and its publication on a board."""
