"""Profile mode: where a kernel's time goes."""
