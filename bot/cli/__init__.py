"""The command line door: the `podium` command."""
