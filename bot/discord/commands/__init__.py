"""One file per command or small group, each with `async def setup(tree)`."""
