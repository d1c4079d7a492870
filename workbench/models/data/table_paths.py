"""Which files are tables, and which of them are shards of one: ``train-00000-of-00002.parquet`` as the Hub has it."""

from __future__ import annotations

import re
from pathlib import Path

from workbench.errors import DataError
from workbench.readable import few

TEXTS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
GZIP = ".gz"
SUFFIXES = (*TEXTS, ".parquet", ".arrow", *(suffix + GZIP for suffix in TEXTS))
SHARD = re.compile(r"(?P<table>.+)[-.](?P<number>\d{2,6})-of-(?P<count>\d{2,6})(-[0-9a-f]{16})?(?P<suffix>\.[a-z.]+)")


def suffix_of(file: Path) -> str:
    """Return a file's suffix in small letters, of packed texts with what they are: ``.jsonl.gz``."""
    name = file.name.lower()
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), file.suffix.lower())


def table_of(file: Path) -> Path:
    """Return the path that stands for all shards of a table, their names before the number; of others the file."""
    match = SHARD.fullmatch(file.name)
    return file.with_name(match["table"]) if match and suffix_of(file) in SUFFIXES else file


def shards_of(table: Path) -> list[Path]:
    """Return the shards in order for which a path stands (:func:`table_of`), none for a file or a folder.

    Raises DataError where one is missing, or where they are of several sets.
    """
    found = [] if table.exists() else [each.name for each in table.parent.glob("*-of-*") if table_of(each) == table]
    shards = sorted(filter(None, map(SHARD.fullmatch, found)), key=lambda shard: int(shard["number"]))
    if not shards:
        return []
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
