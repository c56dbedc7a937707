"""Where the command line begins: outside the package, whose imports take a while in which somebody may press Ctrl-C."""

from __future__ import annotations

import sys


def main() -> None:
    """Run one command line and exit; 130 after Ctrl-C, as shells have it."""
    try:
        from fuse_index.cli.program import main as run

        run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
