"""Backends: one plugin for each kind of machine on which the harness can run."""
