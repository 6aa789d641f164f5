"""Use cases, one file each; they know ports and domain, no SDK."""
