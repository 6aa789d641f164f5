"""The command line front end: the `podium` command."""
