"""What runs next to a submission, in its own process."""
