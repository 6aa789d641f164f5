"""A submitted task: its check, and its publication on a board."""
