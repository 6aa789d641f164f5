"""Shows each submission where it was sent from: live while it moves, whole at its end."""
