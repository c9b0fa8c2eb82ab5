"""The program's first lines: whatever it imports or does, a signal to stop it gives a sentence."""

import io
import sys

from .system.signals import received, say_stopped, stop_on_signals


def main() -> None:
    """Runs the command line. Exits with 130, 143 or 129 where SIGINT, SIGTERM or SIGHUP stopped it."""
    try:
        stop_on_signals()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal that lacks a character shows another
        from .cli import main as command

        command()
    except BaseException as error:
        # An import that is interrupted often raises something else, so any end after a signal is that signal's.
        number = received()
        if not number or (isinstance(error, SystemExit) and error.code == 128 + number):
            raise
        sys.exit(say_stopped())


if __name__ == "__main__":
    main()
