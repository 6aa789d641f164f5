"""The ports at a Podium far away, over HTTPS: nothing but requests outwards."""
