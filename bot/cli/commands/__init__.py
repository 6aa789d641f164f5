"""One file per command or small group."""
