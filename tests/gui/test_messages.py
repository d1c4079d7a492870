"""The log of messages."""

from __future__ import annotations

import pytest

from workbench.gui.context.messages import SAME_END, MessageLog


def lines(log: MessageLog) -> list[tuple[str, str]]:
    return [(entry.title, entry.text) for entry in log.entries]


@pytest.mark.parametrize("texts", [("", "it took 2 min"), ("it took 2 min", "")])
def test_the_end_of_a_long_job_is_one_line(texts: tuple[str, str]) -> None:
    log = MessageLog()
    log.done("Save")
    for text in texts:
        log.done("Score", text)
    assert lines(log) == [("Done: Save", ""), ("Done: Score", "it took 2 min")]


def test_the_same_job_done_later_is_another_line(monkeypatch: pytest.MonkeyPatch) -> None:
    log, now = MessageLog(), [100.0]
    monkeypatch.setattr("workbench.gui.context.messages.time.time", lambda: now[0])
    log.done("Score")
    now[0] += SAME_END + 1
    log.done("Score")
    assert lines(log) == [("Done: Score", "")] * 2
