"""HTTP: what programs and browsers ask of Podium."""
