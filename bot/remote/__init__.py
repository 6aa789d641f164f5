"""The ports implemented for a remote Podium, with outgoing HTTPS requests only."""
