"""The rules of the leaderboard: pure functions and types, without input or output."""
