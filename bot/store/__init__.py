"""The ports implemented in Postgres."""
