"""Takes queued jobs to runners and stores their evaluations."""
