"""``python -m workbench``: the same as the ``workbench`` command."""

import multiprocessing
import sys

from workbench.cli import main

if __name__ == "__main__":
    multiprocessing.freeze_support()
    sys.exit(main())
