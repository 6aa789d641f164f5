"""The entry of the `podium` command: settings, then the command line."""

import sys

from bot.app.installation import Installation
from bot.app.logs import log_to_stderr
from bot.cli.app import run
from bot.domain.errors import SetupError
from bot.settings import read_settings


def main() -> None:
    """Run the command line of this process."""
    log_to_stderr()
    try:
        settings = read_settings()
    except SetupError as error:
        sys.stderr.write(f"podium: {error}\n")
        sys.exit(3)
    sys.exit(run(Installation(settings), sys.argv[1:]))


if __name__ == "__main__":
    main()
