"""Two clocks, rounds and intervals."""
