"""The evaluation server's requests: what they may say, and what they mean to the judge."""
