"""A person's client of a Podium elsewhere, over HTTPS."""
