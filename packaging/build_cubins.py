"""Compiles every kernel for every architecture, into the package; needs NVRTC, no GPU.

    python packaging/build_cubins.py [--architectures sm_80 sm_90] [--budget [FILE.cu ...]]

The images are found by the hash of their source: one that no longer fits its source is not used, and is removed here.
``--budget`` writes tests/kernels/budget.json instead: what every kernel takes, which the tests compare; with the names
of sources, only their rows.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from workbench_kernels.build import nvrtc
from workbench_kernels.build.source import ARCHITECTURES, PREBUILT, compile_text, resources, source_key
from workbench_kernels.catalog import SOURCES

BUDGET = Path(__file__).parent.parent / "tests" / "kernels" / "budget.json"


def build(architectures: list[str]) -> None:
    """Write the images and a manifest, and remove those of older sources."""
    names = []
    for source in SOURCES:
        text = source.text
        for architecture in (name for name in source.architectures if name in architectures):
            start = time.perf_counter()
            data = compile_text(text, source.file, architecture).image
            path = PREBUILT / architecture / f"{Path(source.file).stem}-{source_key(text, architecture)}.cubin"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            names.append(path.relative_to(PREBUILT).as_posix())
            print(f"{source.file:24s} {architecture:8s} {len(data):8d} bytes {time.perf_counter() - start:6.2f} s")
    for path in PREBUILT.glob("*/*.cubin"):
        if path.relative_to(PREBUILT).as_posix() not in names:
            path.unlink()
    manifest = {"nvrtc": ".".join(map(str, nvrtc.version())), "images": sorted(names)}
    (PREBUILT / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def write_budget(files: list[str]) -> None:
    """Write registers, spilled bytes and static shared memory of every kernel for every architecture.

    With ``files`` the rows of other sources stay as they are.
    """
    before = json.loads(BUDGET.read_text(encoding="utf-8")) if files else {}
    table: dict[str, dict[str, dict[str, list[int]]]] = {
        source.file: before[source.file] for source in SOURCES if source.file in before and source.file not in files
    }
    for source in (source for source in SOURCES if source.file not in table):
        for architecture in source.architectures:
            found = resources(compile_text(source.text, source.file, architecture).log)
            for entry, used in sorted(found.items()):
                row = table.setdefault(source.file, {}).setdefault(entry, {})
                row[architecture] = [used.registers, used.stack + used.spills, used.shared]
    lines = []
    for file in sorted(table):
        rows = table[file]
        entries = ",\n".join(f"    {json.dumps(entry)}: {json.dumps(row)}" for entry, row in rows.items())
        lines.append(f"  {json.dumps(file)}: {{\n{entries}\n  }}")
    head = f'{{\n  "nvrtc": {json.dumps(list(nvrtc.version()))},\n'
    BUDGET.write_text(head + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architectures", nargs="+", default=list(ARCHITECTURES), choices=ARCHITECTURES)
    parser.add_argument("--budget", nargs="*", metavar="FILE.cu")
    given = parser.parse_args()
    if given.budget is not None:
        write_budget(given.budget)
    else:
        build(given.architectures)


if __name__ == "__main__":
    main()
