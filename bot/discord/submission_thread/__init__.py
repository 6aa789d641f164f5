"""Shows each submission where it came from: live while it runs, in full at its end."""
