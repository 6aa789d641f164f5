"""What is shown, as neutral blocks that every front end draws in its own way."""
