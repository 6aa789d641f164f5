"""KernelBot's HTTP API, for its unmodified command line popcorn-cli.

It needs `POPCORN_API_URL=<base>/popcorn`, and a personal token as `cli_id` in `~/.popcorn.yaml`.
Routes and bodies are KernelBot's; the work is done by Podium's services.
"""
