"""The HTTP front end for programs and browsers."""
