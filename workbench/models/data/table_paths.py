"""Which files are tables, and which of them are shards of one: ``train-00000-of-00002.parquet`` as the Hub has it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from workbench.errors import DataError
from workbench.readable import few

TEXTS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
PACKED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
"""How texts are packed, as pyarrow calls it."""

ARROW = (".arrow", ".feather")
SUFFIXES = (*TEXTS, ".parquet", *ARROW, *(suffix + packed for suffix in TEXTS for packed in PACKED))
SAVED = ("dataset_dict.json", "dataset_info.json", "dataset_infos.json", "state.json")
"""What ``datasets`` puts beside the tables that it saves."""

SHARD = re.compile(r"(?P<table>.+)[-.](?P<number>\d{2,6})-of-(?P<count>\d{2,6})(-[0-9a-f]{16})?(?P<suffix>\.[\w.]+)")
NUMBERED = re.compile(r"(?P<before>(.*[-_.])?)(?P<number>\d{1,6})(?P<suffix>\.[\w.]+)")
"""Shards that do not say how many there are: ``0000.parquet``, ``train-0.jsonl``."""

ANY = "#"
"""Stands for their numbers in the path of all."""


def suffix_of(file: Path) -> str:
    """Return a file's suffix in small letters, of packed texts with what they are: ``.jsonl.gz``."""
    name = file.name.lower()
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), file.suffix.lower())


def tables_of(files: Sequence[Path]) -> list[Path]:
    """Return the paths that stand for tables among ``files``, all shards of one by one path, in order.

    That is their names before the number; or, where they do not say how many there are and go on from 0 or 1, the name
    with ANY for it.  Others stand for themselves.
    """
    tables, numbered = set[Path](), defaultdict[Path, list[tuple[int, Path]]](list)
    for file in files:
        if (match := SHARD.fullmatch(file.name)) is not None:
            tables.add(file.with_name(match["table"]))
        elif (match := NUMBERED.fullmatch(file.name)) is not None:
            numbered[file.with_name(f"{match['before']}{ANY}{match['suffix']}")].append((int(match["number"]), file))
        else:
            tables.add(file)
    for table, shards in numbered.items():
        numbers, count = sorted(number for number, _ in shards), len(shards)
        whole = count > 1 and numbers in ([*range(count)], [*range(1, count + 1)])
        tables.update([table] if whole else (file for _, file in shards))
    return sorted(tables)


def shards_of(table: Path) -> list[Path]:
    """Return the shards in order for which a path stands (:func:`tables_of`), none for a file or a folder.

    Raises DataError where one is missing, or where they are of several sets.
    """
    if table.exists() or not table.parent.is_dir():
        return []
    found = [each.name for each in table.parent.iterdir() if suffix_of(each) in SUFFIXES]
    known = {each["number"]: each.string for each in filter(None, map(NUMBERED.fullmatch, found))
             if f"{each['before']}{ANY}{each['suffix']}" == table.name}  # fmt: skip
    if known:
        return [table.with_name(known[number]) for number in sorted(known, key=int)]
    shards = [each for each in filter(None, map(SHARD.fullmatch, found)) if each["table"] == table.name]
    if not shards:
        return []
    found = [shard.string for shard in shards]
    shards.sort(key=lambda shard: int(shard["number"]))
    count, numbers = int(shards[0]["count"]), [int(shard["number"]) for shard in shards]
    if len(set(numbers)) < len(numbers) or len({(shard["count"], shard["suffix"]) for shard in shards}) > 1:
        raise DataError(f"{table}: the shards {few(sorted(found))} are of several tables; remove those of all but one")
    first, (start, end) = shards[0].string, shards[0].span("number")
    expected = range(1, count + 1) if count in numbers else range(count)
    missing = [
        f"{first[:start]}{number:0{end - start}}{first[end : shards[0].end('count')]}{shards[0]['suffix']}"
        for number in expected if number not in {*numbers}
    ]  # fmt: skip
    if missing or len(numbers) > count:
        raise DataError(f"{table} is incomplete: of its {count} shards {few(missing)} is missing; add it")
    return [table.with_name(shard.string) for shard in shards]
