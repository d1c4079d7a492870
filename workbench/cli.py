"""The command line: every step of the job without a display.

Standard output carries the result (text, or with ``--json`` exactly one JSON object), standard error the progress bar
and the one-line errors.  Exit codes: 0 success, 1 failure, 2 bad usage.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

from workbench.console.commands import COMMANDS, Command
from workbench.console.terminal import Bar
from workbench.errors import WorkbenchError
from workbench.version import VERSION


def parser() -> argparse.ArgumentParser:
    """Build the parser of ``workbench`` and all its commands."""
    root = argparse.ArgumentParser(
        prog="workbench",
        description="See, plan, check and export mixed-precision quantization of neural networks. "
        "Without a command, opens the window.",
        epilog="example: workbench inspect path/to/model",
    )
    root.add_argument("--version", action="version", version=f"workbench {VERSION}")
    commands = root.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS:
        entry = commands.add_parser(
            command.name,
            help=command.help,
            description=command.description or command.help,
            epilog=f"example: {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.arguments(entry)
        entry.add_argument("--json", action="store_true", help="print one JSON object on standard output, nothing else")
        entry.add_argument("--debug", action="store_true", help="show the traceback of an error")
        entry.add_argument("--quiet", action="store_true", help="no progress bar")
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    # Threads of torch that spin while they wait stall every parallel region by milliseconds on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    words = list(sys.argv[1:] if arguments is None else arguments)
    names = {command.name: command for command in COMMANDS}
    if not words or (words[0] not in names and not words[0].startswith("-")):
        words.insert(0, "gui")
    options = parser().parse_args(words)
    if arguments is None:
        from workbench import log

        log.start("window" if options.command == "gui" else "command")
    return run(names[options.command], options)


def run(command: Command, options: argparse.Namespace) -> int:
    """Carry out one command; every expected failure becomes one line on standard error and exit code 1."""
    try:
        with Bar(enabled=not options.quiet and sys.stderr.isatty()) as progress:
            result = command.run(options, progress)
    except (WorkbenchError, OSError, MemoryError) as error:
        logging.getLogger(__name__).info("%s failed", command.name, exc_info=error)
        if options.debug:
            raise
        print(f"workbench {command.name}: {_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"workbench {command.name}: cancelled", file=sys.stderr)
        return 1
    if result is not None:
        _print(command, options, result)
    return 0


def _print(command: Command, options: argparse.Namespace, result: dict[str, Any]) -> None:
    try:
        print(json.dumps(result, allow_nan=False) if options.json else command.text(result))
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()


def _line(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "out of memory; use a smaller --batch-size or a machine with more memory"
    text = " ".join(str(error).split()) or type(error).__name__
    command = error.command if isinstance(error, WorkbenchError) else ""
    return f"{text} ({command})" if command else text


if __name__ == "__main__":
    sys.exit(main())
