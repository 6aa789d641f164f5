"""The entry of the `podium` command."""

import sys

from bot.cli.app import run


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
