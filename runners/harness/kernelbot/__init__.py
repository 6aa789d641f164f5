"""A task's own evaluation: how it is compiled and started, and how its results are parsed."""
