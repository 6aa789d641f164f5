"""Builds a callable kernel from a submission's source."""
