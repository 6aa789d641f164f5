"""Postgres behind the ports, and the same ports in memory."""
