"""Writes the session file of the current layout for the archive: ``python -m tests.archive.make_session NAME.qwb``.

Run once for each version of the layout; a file in the archive is never written again.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from tests.session.sessions import full_session

if __name__ == "__main__":
    session = full_session()
    statistics = {key: value for key, value in session.statistics.items() if key[1] != "output"}
    replace(session, statistics=statistics).save(Path(__file__).parent / sys.argv[1])
