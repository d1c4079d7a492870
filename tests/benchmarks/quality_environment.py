"""The peers' own Python environment: built once in the cache folder, each tool beside one and the same torch.

About 1.7 GB and two minutes with a CPU build of torch.  A tool that does not install is reported with the reason.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from quality_rows import Row

PACKAGES = {
    "torchao": ("torchao",), "quanto": ("optimum-quanto", "ninja"), "hqq": ("hqq",), "gguf": ("gguf",),
    "auto_round": ("auto-round",), "modelopt": ("nvidia-modelopt",), "gptq": (),
}  # fmt: skip
"""What to install for each tool.  AIMET needs an environment of its own and is left out."""

SHARED = ("transformers>=5,<6", "accelerate", "numpy")

SCRIPTS = Path(__file__).parent / "quality_peers"
INSTALLING = 1200
"""Seconds that one installation may take."""


class PeerError(Exception):
    """A peer could not be installed or run; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A virtual environment in ``folder`` with ``torch`` (a requirement) that every tool has to live with."""

    folder: Path
    torch: str = "torch==2.13.0"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def prepare(self, tool: str) -> None:
        """Install what ``tool`` needs, once; PeerError with the reason if it cannot be."""
        error = _installation(self, tool)
        if error:
            raise PeerError(f"could not be installed: {error}")

    def versions(self) -> dict[str, str]:
        """Return the version of every package of the tools."""
        if not self.python.is_file():
            return {}
        listed = subprocess.run(
            [self.python, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        expected = {"torch", "transformers", *(name for names in PACKAGES.values() for name in names)}
        result = json.loads(listed.stdout) if listed.returncode == 0 else []
        return {item["name"]: item["version"] for item in result if item["name"] in expected}

    def install(self, tool: str) -> None:
        """Make the environment if there is none, and install ``tool`` in it."""
        if not self.python.is_file():
            subprocess.run([sys.executable, "-m", "venv", self.folder], check=True, timeout=INSTALLING)
        command = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", self.torch]
        subprocess.run(
            [*command, *SHARED, *PACKAGES[tool]], check=True, capture_output=True, text=True, timeout=INSTALLING
        )


@cache
def _installation(environment: Environment, tool: str) -> str:
    """Install a tool unless it is there; return why it failed, empty if it did not."""
    done = environment.folder / f"installed-{tool}"
    if done.is_file() and done.read_text() == environment.torch:
        return ""
    try:
        environment.install(tool)
    except subprocess.TimeoutExpired:
        return f"pip took more than {INSTALLING} seconds"
    except subprocess.CalledProcessError as error:
        return _last_line(error.stderr) or str(error)
    done.write_text(environment.torch)
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a peer works on: a model's folder and both splits as ``.npy`` files."""

    model: Path
    calibration: Path
    evaluation: Path


def run_row(environment: Environment, row: Row, subject: Subject, threads: int, limit: int) -> dict[str, Any]:
    """Run one row in the peers' environment and return what it measured; PeerError with the reason if it fails."""
    environment.prepare(row.tool)
    command = [
        environment.python, SCRIPTS / f"run_{row.tool}.py", "--row", row.row, "--model", subject.model,
        "--calibration", subject.calibration, "--evaluation", subject.evaluation,
    ]  # fmt: skip
    home = {**os.environ, "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
    path = f"{environment.python.parent}{os.pathsep}{home.get('PATH', '')}"  # where ninja is, which quanto calls
    try:
        completed = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, env={**home, "PATH": path},
            cwd=environment.folder,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise PeerError(f"took more than {limit} seconds") from None
    if completed.returncode:
        raise PeerError(_last_line(completed.stderr) or f"ended with {completed.returncode}")
    result: dict[str, Any] = json.loads(completed.stdout.strip().splitlines()[-1])
    return result


def _last_line(text: str | None) -> str:
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
