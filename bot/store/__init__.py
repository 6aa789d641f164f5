"""Postgres behind the ports."""
