#!/bin/sh
# Opens the window on the bundled model; without a display, runs the same job headless and says where the files are.
set -eu
cd "$(dirname "$0")/.."
. packaging/setup.sh
setup_project ""
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] || [ "$(uname -s)" != Linux ]; then
    install_libraries x11
    exec .venv/bin/workbench demo "$@"
fi
install_libraries ""
echo "There is no display, so the demo runs headless."
exec .venv/bin/workbench demo --headless --out demo-output "$@"
