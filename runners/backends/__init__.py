"""One file per place where the harness can run."""
