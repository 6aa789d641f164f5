"""KernelBot's HTTP API, for its unmodified command line popcorn-cli.

`POPCORN_API_URL=<base>/popcorn` and a personal token as `cli_id` in `~/.popcorn.yaml` are all that
it needs. Routes and bodies are KernelBot's; what is done is done by our own services.
"""
