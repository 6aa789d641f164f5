"""A task's own evaluation as a program in a sandbox: its start, its line to the judge, its end."""
