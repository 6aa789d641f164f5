"""The routes of the HTTP front end: each module has a `router` and imports no other."""
