"""Profile mode: where a kernel spends its time."""
