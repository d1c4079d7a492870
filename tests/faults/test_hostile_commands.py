"""Names from strangers' files in what commands print: no control characters, no endless lines, no traceback."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tests.gui.test_hostile_names import HOSTILE, MARK, hostile
from workbench.cli import main

QUICK = ("info S", "compare S S", "inspect M", "info X", "X")
MORE = (
    "explain S", "front S", "ranges S", "channels S", "outliers S", "quality S", "plan S --bits-per-weight 4",
    "sensitivity S --metric weight-error", "ranges S --layer X", "explain S --layer X", "plan S --metric X",
    "repair S --out O/r.qwb", "report S O/report.html", "export S --to plan --out O/p.json",
    "check O/p.json --session S --target vllm", "check O/p.json --session S --target gguf", "inspect X",
    "export S --to script --out O/s.py", "evaluate S --plan X",
    "apply M --plan P --to safetensors --out O/q.safetensors",
    "apply M --plan P --to X --out O/q", "calibrate M --data X --out O/c.qwb", "compare S X",
    "repair X --out O/x.qwb",
)  # fmt: skip


def problems(output: str) -> list[str]:
    """Lines with what a terminal acts on, or does not show, or of a length that nobody reads."""
    return [
        line[:200] for line in output.split("\n")
        if len(line) > 20_500 or any(unicodedata.category(mark) in ("Cc", "Cf", "Cs", "Zl", "Zp") for mark in line)
    ]  # fmt: skip


@pytest.fixture
def names(tmp_path: Path) -> dict[str, str]:
    """Hostile files under hostile names, by the letters that stand for them in the commands."""
    (tmp_path / "out").mkdir()
    session, model, plan = (tmp_path / f"a{MARK}.{suffix}" for suffix in ("qwb", "safetensors", "json"))
    hostile().save(session)
    save_file({f"{HOSTILE}.{number}.weight": torch.randn(16, 16) for number in range(3)}, model)
    hostile().plan.save(plan)
    return {"S": str(session), "M": str(model), "P": str(plan), "X": f"{HOSTILE[:100]}X", "O": f"{tmp_path}/out"}


EVERY = (*QUICK, *MORE, *(f"{command} --json" for command in (*QUICK, *MORE)))


@pytest.mark.parametrize("commands", [QUICK, pytest.param(EVERY, marks=pytest.mark.slow)])
def test_what_a_command_prints_is_no_more_than_text(
    names: dict[str, str], capsys: pytest.CaptureFixture[str], commands: tuple[str, ...]
) -> None:
    printed = 0
    for command in commands:
        words = [names.get(word, word.replace("O/", f"{names['O']}/")) for word in command.split()]
        try:
            code = main([*words, "--quiet"])
        except SystemExit as end:  # bad usage
            code = int(str(end.code))
        output = capsys.readouterr()
        printed += bool(output.out)
        if "--json" in command and output.out:  # also of a check that refuses
            json.loads(output.out)
        else:
            assert not problems(output.out) and "Traceback" not in output.err, command
        assert not problems(output.err), command
        assert code == 0 or output.out or output.err.count("\n") == 1, (command, output)
    assert printed > len(commands) // 3
