#!/bin/sh
# Installs the project with its test dependencies into .venv and runs every check: style, types, tests.
set -eu
cd "$(dirname "$0")/.."
. packaging/setup.sh
setup_project test
install_libraries ""
install_compiler
.venv/bin/python -m ruff check workbench kernels tests resources
.venv/bin/python -m mypy
# One process for each processor, four at most: each takes 2 GB.  One thread in each: more would wait for one another.
# Files in their order: those of tests/devices come first in their processes.
exec env OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder "$@"
