"""The use cases; they import ports and the domain, but no SDK."""
