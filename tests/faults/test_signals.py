"""SIGINT and SIGTERM at random moments of a command: exit code 130 or 143, one line, no traceback, nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.faults import endings, kills, resumed
from tests.faults.kills import hears
from tests.session.sessions import small_session
from workbench.cli import parser
from workbench.session.session import Session

SEED = 10


@pytest.mark.parametrize("programs", [endings, kills, resumed], ids=lambda programs: str(programs.__name__))
def test_commands_that_are_stopped_are_commands(programs: Any) -> None:
    """Two ended at once for a flag that had gone, and were counted as stopped too late."""
    for name, line in programs.COMMANDS.items():
        words = line.split() if isinstance(line, str) else line
        assert not parser().parse_known_args(words)[1], name


@pytest.mark.parametrize("name", ["a.qwb", "a.json", "a.py", "a.html", "a.onnx", "a.safetensors"])
def test_half_files_are_found(tmp_path: Path, name: str) -> None:
    session, out = tmp_path / "s.qwb", tmp_path / "out"
    out.mkdir()
    small_session().save(session)
    (out / name).write_text("{'a': (")
    assert name in kills.problem(session, out, ())


@pytest.mark.skipif(sys.platform != "linux", reason="the system says which signals a process answers")
@pytest.mark.parametrize("count", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_a_signal_ends_a_command_with_one_line(tmp_path: Path, count: int) -> None:
    small_session().save(tmp_path / "s.qwb")
    command = [sys.executable, "-m", "workbench", "info", str(tmp_path / "s.qwb")]
    start = time.monotonic()
    subprocess.run(command, capture_output=True, check=True)
    whole, random, stopped = time.monotonic() - start, np.random.default_rng(SEED), 0
    for number in range(count):
        kind = (signal.SIGINT, signal.SIGTERM)[number % 2]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        hears(process.pid)
        time.sleep(random.uniform(0, whole) if number > 1 else 0)
        process.send_signal(kind)
        _, errors = process.communicate(timeout=60)
        assert "Traceback" not in errors and process.returncode in (0, 128 + kind), (number, process.returncode, errors)
        if process.returncode:
            stopped += 1
            assert len(errors.splitlines()) == 1 and errors.endswith("cancelled\n"), errors
    print(f"seed {SEED}: {stopped} of {count} were stopped, each with one line")
    assert os.listdir(tmp_path) == ["s.qwb"]


SLOW_TO_END = """
import time
from argparse import Namespace
from workbench import cli, program
from workbench.console.command import Command
class Large:
    def __del__(self):
        time.sleep(20)
def run(arguments, progress):
    large = Large()
    print("ready", flush=True)
    while True:
        time.sleep(0.01)
command = Command(name="inspect", help="", example="", flags=(), run=run)
cli.main = lambda: cli.run(command, Namespace(quiet=True, debug=False))
program.start()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there, signals wake no pipe")
def test_a_command_that_is_slow_to_free_its_memory_says_one_line() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_TO_END], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (143, "workbench inspect: cancelled\n")


FIRST = "import sys; before = set(sys.modules); import workbench.__main__; print(*sorted({*sys.modules} - before))"


def test_the_first_line_waits_for_no_imports() -> None:
    """What stands before it is time in which a signal ends the program without a word."""
    ended = subprocess.run([sys.executable, "-I", "-c", FIRST], capture_output=True, text=True, check=True)
    loaded = {name for name in ended.stdout.split() if not name.startswith("workbench")}
    assert loaded <= {"signal", "_signal", "enum", "types", "operator", "_operator", "reprlib", "itertools", "keyword",
                      "collections", "_collections", "functools", "_functools", "__future__"}  # fmt: skip


HALF = """
import sys
from workbench import program
class Half:
    def __del__(self): raise AttributeError("half")
program._received += [2] * int(sys.argv[1])
sys.unraisablehook = program._again
Half()
"""


@pytest.mark.parametrize("signals", [0, 1])
def test_a_finalizer_that_a_signal_interrupted_says_nothing(signals: int) -> None:
    """As llvmlite's do, whose second half then misses what the first half would have left."""
    command = [sys.executable, "-c", HALF, str(signals)]
    errors = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert ("AttributeError: half" in errors) == (signals == 0), errors


REMOVING = """
import os, shutil, signal, sys
from pathlib import Path
from workbench import atomic, cli, program
from workbench.errors import ExportError
remove = shutil.rmtree
def interrupted(folder, **options):
    if os.path.isdir(folder):
        shutil.rmtree = remove
        os.kill(os.getpid(), signal.SIGINT)
    remove(folder, **options)
def run():
    for _ in range(2):
        with atomic.replacing_folder(Path(sys.argv[1]), ExportError, "it") as folder:
            (folder / "file").write_text("whole")
    return 0
shutil.rmtree, cli.main = interrupted, run
program.start()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="exchanges two folders")
def test_a_signal_while_the_replaced_folder_is_removed_leaves_nothing_of_it(tmp_path: Path) -> None:
    """Of 24 exports of MLX folders over one another that SIGINT ended one left the former folder, half removed."""
    ended = subprocess.run([sys.executable, "-c", REMOVING, str(tmp_path / "out")], capture_output=True, text=True)
    assert ended.returncode == 130 and ended.stderr == "workbench: cancelled\n"
    assert os.listdir(tmp_path) == ["out"] and (tmp_path / "out" / "file").read_text() == "whole"


@pytest.mark.skipif(os.name == "nt", reason="shells of POSIX close streams")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_file_s_place(tmp_path: Path, closed: str) -> None:
    """The limited process of a session, and the session itself, would get the number of a stream that is closed."""
    session = tmp_path / "s.qwb"
    small_session().save(session)
    repaired, words = tmp_path / "r.qwb", f"{sys.executable} -m workbench"
    for command in (f"{words} info {session}", f"{words} repair {session} --out {repaired}", f"{words} --help"):
        ended = subprocess.run(["sh", "-c", f"{command} {closed}"], capture_output=True, text=True)
        nowhere = " >&-" in f" {closed}"
        errors = ended.stderr.splitlines()
        assert ended.returncode == nowhere and len(errors) == (nowhere and "2>" not in closed), (command, errors)
        assert all(line.endswith("the result cannot be written: Bad file descriptor") for line in errors)
    assert Session.load(repaired).model == Session.load(session).model
    assert sorted(os.listdir(tmp_path)) == ["r.qwb", "s.qwb"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_standard_output_is_one_line(tmp_path: Path) -> None:
    small_session().save(tmp_path / "s.qwb")
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "workbench", "info", str(tmp_path / "s.qwb")]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1 and ended.stderr == (
        "workbench info: the result cannot be written: No space left on device\n"
    )


FINALIZER = """
import os, signal, sys, time, weakref
from workbench import program

class Thing: pass

def run():
    thing = Thing()
    reference = weakref.ref(thing, lambda _: (os.kill(os.getpid(), signal.SIGINT), [0 for _ in range(10**5)]))
    del thing
    time.sleep(30)
    return 0

import workbench.cli
workbench.cli.main = run
program.start()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_signal_in_a_finalizer_is_not_lost() -> None:
    ended = subprocess.run([sys.executable, "-c", FINALIZER], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 130 and ended.stderr == "workbench: cancelled\n", ended


TWICE = """
import os, signal, time
from workbench import program

def run():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        [0 for _ in range(10**5)]
        print("tidied up", flush=True)

import workbench.cli
workbench.cli.main = run
program.start()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_second_signal_does_not_end_the_tidying_up_after_the_first() -> None:
    ended = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 143 and ended.stderr == "workbench: cancelled\n", ended
    assert ended.stdout == "tidied up\n"


SLOW = """
import threading, time
start = threading.Thread.start
threading.Thread.start = lambda thread: (start(thread), [time.sleep(0.002) for _ in range(50)])
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_signal_that_comes_again_too_early_shows_no_traceback() -> None:
    """On a busy machine the hook that has it sent again is not over when it comes."""
    ended = subprocess.run([sys.executable, "-c", SLOW + FINALIZER], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 130 and ended.stderr == "workbench: cancelled\n", ended


NATIVE = """
import hashlib, subprocess, sys
from pathlib import Path
import workbench.cli
from workbench import program
from workbench.atomic import replacing
from workbench.errors import WorkbenchError

def run():
    with replacing(Path(sys.argv[1]), WorkbenchError, "it") as part:
        child = subprocess.Popen(["sleep", "600"])
        print(child.pid, flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)

workbench.cli.main = run
program.start()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_native_code_and_leaves_nothing(tmp_path: Path, kind: signal.Signals) -> None:
    command = [sys.executable, "-c", NATIVE, str(tmp_path / "whole")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    time.sleep(0.1)
    start = time.monotonic()
    process.send_signal(kind)
    _, errors = process.communicate(timeout=60)
    print(f"{time.monotonic() - start:.2f} s")
    assert process.returncode == 128 + kind and errors == "workbench: cancelled\n"
    assert not list(tmp_path.iterdir())
    end = time.monotonic() + 10
    while _runs(child) and time.monotonic() < end:  # the system takes a moment to end what was killed
        time.sleep(0.01)
    assert not _runs(child)


def _runs(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


ENDING = """
import atexit, os, sys, threading, time
import workbench.cli
from workbench import program

class Held:
    def __del__(self): os.write(2, b"freed")

def run():
    sys.modules["held"] = Held()
    atexit.register(os.write, 2, b"called,")
    threading.Thread(target=lambda: (time.sleep(0.2), os.write(2, b"waited,"))).start()
    sys.stdout.write("text")
    return int(sys.argv[1])

workbench.cli.main = run
program.start()
"""


@pytest.mark.parametrize("code", [0, 1])
def test_the_end_waits_for_nothing_but_what_was_asked(code: int) -> None:
    """Python would free every object first, a second or more after a step, in which signals go nowhere."""
    ended = subprocess.run([sys.executable, "-c", ENDING, str(code)], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "text", "waited,called,")
