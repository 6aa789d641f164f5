"""The routes of the web door: each module has `router`, and none knows another."""
