"""The JSON messages between our own HTTP API and its clients."""
