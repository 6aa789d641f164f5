"""The use cases, one per file; they import ports and the domain, but no SDK."""
