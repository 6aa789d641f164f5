"""The Discord door: slash commands in, messages and threads out."""
