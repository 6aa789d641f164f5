"""The Discord front end: receives slash commands, sends messages and threads."""
