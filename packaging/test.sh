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
exec .venv/bin/python -m pytest "$@"
