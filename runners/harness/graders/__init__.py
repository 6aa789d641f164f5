"""Graders: one plugin for each way of grading a task."""
