"""Backends: one module for each place where the harness can run."""
