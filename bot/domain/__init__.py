"""The rules of the leaderboard: pure, without any input or output."""
