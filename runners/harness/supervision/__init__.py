"""Starts, watches, freezes and kills the processes in which submitted code runs."""
