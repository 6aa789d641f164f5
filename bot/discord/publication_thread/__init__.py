"""Shows a publication on Discord: its thread, its outcome, its announcement."""
