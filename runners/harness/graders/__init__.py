"""One file per way of grading a task."""
