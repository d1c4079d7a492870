"""The command line: every step of the job without a display.

Standard output carries the result (text, or with ``--json`` exactly one JSON object), standard error the progress bar
and the one-line errors.  Exit codes: 0 success, 1 failure or a check that says no, 2 bad usage, 130 and 143
interrupted and terminated.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from workbench.console.command import Command
from workbench.console.commands import COMMANDS
from workbench.console.terminal import Bar, print_report
from workbench.errors import WorkbenchError, nearest, out_of_memory
from workbench.memory import limited_to
from workbench.models.readers.hub import NAME, fetched
from workbench.private import hide
from workbench.readable import LONGEST, readable
from workbench.version import VERSION

told: list[int] = []
"""The exit codes of what was cancelled and said so."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong with a command in one line, without its usage, which takes ten."""

    def error(self, message: str) -> NoReturn:
        """End the program with the line and code 2."""
        sys.exit(_failed(f"{self.prog}: {message}; see {self.prog} --help", 2))


def parser() -> Parser:
    """Build the parser of ``workbench`` and all its commands."""
    root = Parser(
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
            help=command.help.partition(". ")[0].rstrip("."),
            description=command.help,
            epilog=f"example: workbench {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        entry.set_defaults(refuse=entry.error)
        for add in command.flags:
            add(entry)
        entry.add_argument("--json", action="store_true", help="print one JSON object on standard output, nothing else")
        entry.add_argument("--debug", action="store_true", help="show the traceback of an error")
        entry.add_argument("--quiet", action="store_true", help="no progress bar")
        entry.set_defaults(flags=re.findall(r"--[a-z][a-z-]*", entry.format_usage()))
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    commands = {command.name: command for command in COMMANDS}
    if not words or (words[0] not in commands and not words[0].startswith("-")):
        if words and not (words[0].startswith("demo:") or Path(words[0]).exists()):
            if (folder := fetched(words[0])) is None:
                return _unknown(words[0], commands)
            words[0] = str(folder)
        words.insert(0, "gui")
    options, others = parser().parse_known_args(_joined(words))
    if others:
        return _unrecognized(others[0], options)
    if arguments is None:
        try:
            os.getcwd()
        except OSError:  # MKL would end the process in its own words
            return _failed("workbench: the current folder has been removed; change to another and try again", 1)
        from workbench import log

        hide(*words, **vars(options))
        log.start("window" if options.command == "gui" else "command")
        if options.command != "gui":
            log.name_bus_errors()  # after the log's own handler
    return run(commands[options.command], options)


def _joined(words: Sequence[str]) -> list[str]:
    """Return the words with ``--memory -5GB`` as ``--memory=-5GB``, so that the flag's own reader says what is wrong.

    argparse takes a word that begins with a hyphen and is not a number for a flag, and only says that a value is
    missing.
    """
    joined: list[str] = []
    for word in words:
        if joined and re.match(r"-\.?[0-9]", word) and re.fullmatch(r"--[a-z][a-z-]*", joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def run(command: Command, options: argparse.Namespace) -> int:
    """Carry out one command; every expected failure becomes one line on standard error and exit code 1."""
    logging.getLogger(__name__).info("%s", command.name)
    try:
        limit = limited_to(getattr(options, "memory", None))
        with Bar(not options.quiet and sys.stderr.isatty(), says=not options.quiet) as progress, limit:
            outcome = command.run(options, progress)
    except (WorkbenchError, OSError, MemoryError, RuntimeError) as error:
        logging.getLogger(__name__).info("%s failed", command.name, exc_info=error)
        if options.debug or (isinstance(error, RuntimeError) and not out_of_memory(error)):
            raise
        return _failed(f"workbench {command.name}: {_line(error)}", 1)
    except KeyboardInterrupt as stop:  # with the signal's number, where ``program`` has raised it
        told.append(_failed(f"workbench {command.name}: cancelled", 128 + (stop.args[0] if stop.args else 2)))
        return told[-1]
    if isinstance(outcome, int):
        return outcome
    try:
        print_report(outcome, as_json=options.json)
    except BrokenPipeError:
        sys.stderr.close()
    except OSError as error:  # a full disk; what is left in the buffer goes nowhere, so that the end says nothing
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _failed(f"workbench {command.name}: the result cannot be written: {error.strerror}", 1)
    return outcome.exit_code


def _unknown(word: str, commands: Iterable[str]) -> int:
    on_hub = f"; a model of the Hugging Face Hub is fetched by: hf download {word}"
    closest = on_hub if NAME.fullmatch(word) else nearest(word, commands)
    return _failed(f"workbench: there is no command and no file {word!r}{closest}; see workbench --help", 2)


def _unrecognized(word: str, options: argparse.Namespace) -> int:
    name = f"workbench {options.command}" if options.command else "workbench"
    flag = word.partition("=")[0]
    closest = nearest(flag, getattr(options, "flags", ())) if flag.startswith("--") else ""
    return _failed(f"{name}: there is no argument {word!r}{closest}; see {name} --help", 2)


def _failed(line: str, exit_code: int) -> int:
    print(readable(line, 5 * LONGEST), file=sys.stderr)
    return exit_code


def _line(error: BaseException) -> str:
    if not isinstance(error, WorkbenchError | OSError):
        return "out of memory; use a smaller --batch-size or a machine with more memory"
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        text = f"{os.fspath(error.filename)}: {error.strerror}"
    elif isinstance(error, FileNotFoundError) and "temporary" in str(error.strerror):  # Python's tempfile
        text = "no temporary file can be written; name a folder with room (TMPDIR), and allow files (ulimit -f)"
    command = error.command if isinstance(error, WorkbenchError) else ""
    return f"{text} ({command})" if command else text


if __name__ == "__main__":
    sys.exit(main())
