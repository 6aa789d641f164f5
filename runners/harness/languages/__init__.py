"""One file per language of submissions."""
