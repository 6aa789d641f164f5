"""What is shown, as neutral blocks which every door draws in its own way."""
