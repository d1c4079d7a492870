#!/bin/sh
# Makes .venv in the project's root and installs the project; sourced by demo.sh and test.sh.
#   setup_project EXTRA     EXTRA is empty or the name of an optional dependency group
# WORKBENCH_TORCH overrides the requirement for torch (a CPU-only build, say).

fail() { printf '%s\n' "$*" >&2; exit 1; }

find_python() {
    for name in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python3.14; do
        command -v "$name" >/dev/null 2>&1 || continue
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { printf '%s' "$name"; return; }
    done
    fail "Python 3.11 or newer is needed; found: $(python3 --version 2>&1)."
}

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

apt_install() {
    apt-get update -qq >/dev/null 2>&1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

make_environment() {
    [ -x .venv/bin/python ] && .venv/bin/python -c 'import pip' 2>/dev/null && return
    python=$(find_python) || exit 1
    echo "Making .venv with $("$python" --version)."
    if ! "$python" -m venv .venv >/dev/null 2>&1; then
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        can_install || fail "Python's venv module is incomplete. Install it first: apt install python$version-venv"
        apt_install "python$version-venv" || apt_install python3-venv || fail "python$version-venv could not be installed."
        rm -rf .venv
        "$python" -m venv .venv || fail "A virtual environment could not be made in .venv."
    fi
}

install_project() {
    want=$(cksum pyproject.toml | cut -d' ' -f1)-${1:-run}
    stamp=.venv/installed-$want
    [ -e "$stamp" ] && return
    echo "Installing the project and what it needs into .venv; the first time this takes a few minutes."
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "${WORKBENCH_TORCH:-torch>=2.8,<2.14}" ||
        fail "torch could not be installed; see the messages above."
    target=.
    [ -n "$1" ] && target=".[$1]"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable "$target" ||
        fail "The project could not be installed; see the messages above."
    : >"$stamp"
}

# Prints the names of shared libraries that Qt needs here and does not find.
missing_libraries() {
    plugins=$(.venv/bin/python -c 'import PySide6, pathlib; print(pathlib.Path(PySide6.__file__).parent / "Qt")')
    for file in "$plugins/plugins/platforms/libqoffscreen.so" "$plugins/lib/libQt6Gui.so.6" \
        "$plugins/lib/libQt6Widgets.so.6" "$plugins/lib/libQt6DBus.so.6" ${1:+"$plugins/plugins/platforms/libqxcb.so"}; do
        ldd "$file" 2>/dev/null | sed -n 's/^[[:space:]]*\([^ ]*\) => not found.*/\1/p'
    done | sort -u | tr '\n' ' '
}

# Installs Qt's system libraries where it may, names the packages where it may not. Argument: "x11" for a real display.
install_libraries() {
    [ "$(uname -s)" = Linux ] || return 0
    missing=$(missing_libraries "$1")
    fonts=$(command -v fc-list >/dev/null 2>&1 && fc-list 2>/dev/null | head -n 1)
    [ -z "$missing" ] && [ -n "$fonts" ] && return 0
    packages="libgl1 libegl1 libxkbcommon0 libdbus-1-3 libfontconfig1 fontconfig fonts-dejavu-core"
    [ -n "$1" ] && packages="$packages libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 libxcb-shape0 libxcb-xkb1 libxkbcommon-x11-0"
    if ! can_install; then
        [ -z "$missing" ] && return 0
        fail "Qt needs system libraries that are missing here: $missing
Install them first (Debian, Ubuntu): apt install $packages libglib2.0-0"
    fi
    echo "Installing system libraries for Qt: $packages"
    # shellcheck disable=SC2086
    apt_install $packages || fail "These packages could not be installed: $packages"
    apt_install libglib2.0-0t64 2>/dev/null || apt_install libglib2.0-0 || fail "libglib2.0-0 could not be installed."
    missing=$(missing_libraries "$1")
    [ -z "$missing" ] || fail "Qt still misses these libraries: $missing"
}

# Installs a C++ compiler where it may: the tests build a pretend accelerator; without one they skip it.
install_compiler() {
    command -v c++ >/dev/null 2>&1 || command -v g++ >/dev/null 2>&1 || command -v clang++ >/dev/null 2>&1 && return 0
    if can_install; then
        echo "Installing a C++ compiler: g++"
        apt_install g++ || echo "g++ could not be installed: the tests of the pretend accelerator will be skipped."
    fi
}

setup_project() {
    make_environment
    install_project "$1"
}
