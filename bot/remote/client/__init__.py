"""A person's client of a remote Podium, over HTTPS."""
