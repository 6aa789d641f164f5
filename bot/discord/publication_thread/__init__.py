"""Where a publication is followed on Discord: its thread, its outcome, its announcement."""
