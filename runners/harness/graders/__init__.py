"""Graders: one module for each way of grading a task."""
