"""Reads an HDF5 file in a process of its own, with limits of time, memory and files, and hands over plain arrays.

A damaged or hostile file makes the HDF5 library spin, crash or ask for all memory; here that ends this process and not
the caller's.  Run by path, so that it imports nothing of the workbench.  Standard input is the file, standard output
gets the arrays one after another, then the tree as JSON, then the length of that JSON (8 bytes, little-endian).
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import sys
import zlib
from typing import TYPE_CHECKING, BinaryIO, NotRequired, TypedDict

if TYPE_CHECKING:
    import h5py

FILTERS = (1, 2, 3)
"""deflate, shuffle, fletcher32: what sessions use."""

LARGEST_RATIO, DEPTH, OBJECTS, ROWS_BYTES = 1100, 12, 500_000, 1 << 26
"""How much deflate can grow, how deep groups nest, how many objects there are, how many bytes are read at once."""

FOREIGN = ("CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS", "attributes_crc32")
"""Attributes of dimension scales, and the checksum of the others."""


class Settings(TypedDict):
    """What the process needs to know: where its packages are, its limits, and what to read."""

    path: list[str]
    size: int
    seconds: int
    memory: int
    largest: int
    repair: bool
    skip: list[str]
    used: NotRequired[int]


Attributes = dict[str, list[object]]
"""Kind and value by name; see :func:`plain_attributes`."""


class Node(TypedDict, total=False):
    """A group (``members``), a list of texts, or an array that begins at byte ``start`` of the output."""

    attributes: Attributes
    members: dict[str, Node]
    texts: list[str] | None
    other: str
    dtype: str
    shape: list[int]
    start: int


class Answer(TypedDict, total=False):
    """The tree with what a repair left out, or why there is none."""

    tree: Node
    lost: list[str]
    refused: str
    damaged: str


class Refused(Exception):
    """What a session never holds, in words of our own."""


def main() -> None:
    """Read what the settings in the first argument say, from standard input."""
    settings = json.loads(sys.argv[1])
    sys.path[:] = settings["path"]
    image = bytes(mmap.mmap(0, settings["size"], access=mmap.ACCESS_READ))
    read(image, settings, os.fdopen(1, "wb", closefd=False), sys.stderr.buffer)


def read(image: bytes, settings: Settings, output: BinaryIO, trace: BinaryIO) -> None:
    """Write the tree of ``image`` to ``output`` and end the process; ``trace`` gets the name of each part before it."""
    import h5py

    _limit(settings)
    reader = Reader(settings, output, trace)
    try:
        tree = reader.group(h5py.File(h5py.h5f.open_file_image(image)), 0)
        answer: Answer = {"tree": tree, "lost": reader.lost}
    except Refused as reason:
        answer = {"refused": str(reason)}
    except Exception as error:
        answer = {"damaged": _line(error)}
    text = json.dumps(answer).encode()
    output.write(text + len(text).to_bytes(8, "little"))
    output.flush()
    os._exit(0)  # closing a damaged file can fail


def address_space() -> int:
    """Return the bytes of address space that this process has; 0 where the system does not say."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        with open("/proc/self/statm") as stream:
            return int(stream.read().split()[0]) * resource.getpagesize()
    return 0


def _limit(settings: Settings) -> None:
    """No more files, no memory and time beyond the settings; what the system lacks is left to the caller's clock.

    ``settings["used"]`` is :func:`address_space`, asked before the process was confined: then /proc is out of reach.
    """
    used = settings.get("used") or address_space()
    with contextlib.suppress(ImportError):
        import resource

        for limit, value in (
            (resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, settings["seconds"]), (resource.RLIMIT_NOFILE, 3),
            (resource.RLIMIT_AS, used + settings["memory"]),
            (resource.RLIMIT_FSIZE, resource.getrlimit(resource.RLIMIT_FSIZE)[1]),
        ):  # fmt: skip
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(limit, (value, value))


class Reader:
    """Walks a file; ``lost`` lists what a repair left out."""

    def __init__(self, settings: Settings, output: BinaryIO, trace: BinaryIO) -> None:
        self._settings, self._output, self._trace = settings, output, trace
        self._repair, self._skip = settings["repair"], frozenset(settings["skip"])
        self._objects, self._written, self._met = 0, 0, set[int]()
        self.lost: list[str] = []

    def group(self, group: h5py.Group, depth: int) -> Node:
        """Return a group's attributes and members, in their order."""
        import h5py

        if depth > DEPTH:
            raise Refused(f"its groups nest deeper than {DEPTH} levels")
        if depth == 0:
            self._show("/")
            self._meet(group, "/")
        members: dict[str, Node] = {}
        answer: Node = {"attributes": self._attributes(group), "members": members}
        for name in group:
            place = f"{str(group.name).rstrip('/')}/{name}"
            if place in self._skip:
                continue
            self._show(place)
            self._objects += 1
            if self._objects > OBJECTS:
                raise Refused(f"it holds more than {OBJECTS:,} parts")
            try:
                if group.id.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
                    raise Refused(f"{place} is a link to another place, which a session never has")
                item = group[name]
                self._meet(item, place)
                read = self.group(item, depth + 1) if isinstance(item, h5py.Group) else self._dataset(item, place)
                members[name] = read
            except Exception as error:
                if not self._repair:
                    raise
                self.lost.append(f"{place}: {_line(error)}")
        return answer

    def _meet(self, item: h5py.HLObject, place: str) -> None:
        """Refuse a second name of a part: of a few that hold one another there would be more than anybody can read."""
        import h5py

        address = h5py.h5o.get_info(item.id).addr
        if address in self._met:
            raise Refused(f"{place} is a second name of another part, which a session never has")
        self._met.add(address)

    def _show(self, place: str) -> None:
        """Report to the caller what is read next: if this process dies of it, a repair goes on without it."""
        if self._repair:
            self._trace.write(json.dumps(place).encode() + b"\n")
            self._trace.flush()

    def _attributes(self, item: h5py.HLObject) -> Attributes:
        values = plain_attributes(item, () if self._repair else ("crc32",))
        stored = item.attrs["attributes_crc32"] if self._repair and "attributes_crc32" in item.attrs else None
        if stored is not None and int(stored) != attributes_checksum(values):
            raise Refused("its attributes do not match their checksum")
        return values

    def _dataset(self, dataset: h5py.Dataset, place: str) -> Node:
        import h5py

        if not isinstance(dataset, h5py.Dataset):
            raise Refused(f"{place} is neither a group nor an array")
        layout = dataset.id.get_create_plist()
        filters = [layout.get_filter(number)[0] for number in range(layout.get_nfilters())]
        if layout.get_layout() == h5py.h5d.VIRTUAL or layout.get_external_count():
            raise Refused(f"{place} lies in another file")
        if not set(filters) <= set(FILTERS):
            raise Refused(f"{place} needs the filter {max(filters)}, which sessions do not use")
        attributes = self._attributes(dataset)
        if dataset.dtype.kind == "O" and h5py.check_string_dtype(dataset.dtype) is not None:
            self._reserve(16 * dataset.size, place)
            texts = [bytes(text).decode() for text in dataset[()].ravel().tolist()] if dataset.ndim == 1 else None
            self._compare(attributes, zlib.crc32("\0".join(texts or ()).encode()))
            return {"attributes": attributes, "texts": texts}
        if dataset.dtype.kind not in "biuf" or dataset.dtype.itemsize > 16:
            return {"attributes": attributes, "other": str(dataset.dtype)[:100]}
        if dataset.nbytes > LARGEST_RATIO * dataset.id.get_storage_size() + 4096:
            raise Refused(f"{place} has the shape {dataset.shape} but holds hardly any data")
        self._reserve(dataset.nbytes, place)
        return self._array(dataset, attributes)

    def _array(self, dataset: h5py.Dataset, attributes: Attributes) -> Node:
        """Write an array's bytes, some rows at a time, and return where they are."""
        self._output.write(bytes(-self._written % 64))
        start = self._written = self._written + -self._written % 64
        rows = max(ROWS_BYTES // max(dataset.nbytes // max(len(dataset), 1), 1), 1) if dataset.ndim else 1
        pieces = (dataset[row : row + rows] for row in range(0, len(dataset), rows)) if dataset.ndim else (dataset[()],)
        checksum = 0
        for piece in pieces:
            data = piece.tobytes()
            checksum = zlib.crc32(data, checksum)
            self._output.write(data)
            self._written += len(data)
        self._compare(attributes, checksum)
        return {"attributes": attributes, "dtype": dataset.dtype.str, "shape": list(dataset.shape), "start": start}

    def _compare(self, attributes: Attributes, checksum: int) -> None:
        stored = attributes.get("crc32")
        if self._repair and stored is not None and stored[1] != checksum:
            raise Refused("its values do not match their checksum")

    def _reserve(self, size: int, place: str) -> None:
        if self._written + size > self._settings["largest"]:
            raise Refused(f"{place} makes it larger than the {self._settings['largest'] / 1e9:.1f} GB that are free")


def plain_attributes(item: h5py.HLObject, without: tuple[str, ...] = ()) -> Attributes:
    """Return the attributes that are a text, a number or a truth value as ``[kind, value]``; others as ``["?", type]``.

    Kinds are those of numpy's data types; ``U`` is text, floats are hexadecimal.
    """
    values: Attributes = {}
    for name in item.attrs:
        if name in FOREIGN or name in without:
            continue
        value = item.attrs[name]
        kind = "U" if isinstance(value, str) else str(getattr(getattr(value, "dtype", None), "kind", "?"))
        if kind == "?" or kind not in "Ubiuf" or (kind != "U" and value.ndim):
            values[name] = ["?", type(value).__name__]
        else:
            plain = value if kind == "U" else value.item()
            values[name] = [kind, plain.hex() if kind == "f" else plain]
    return values


def attributes_checksum(values: Attributes) -> int:
    """Return the checksum of attributes as :func:`plain_attributes` returns them."""
    return zlib.crc32(json.dumps(sorted(values.items())).encode())


def _line(error: BaseException) -> str:
    """Return a reason in our own words: HDF5's say how its objects are opened."""
    if isinstance(error, MemoryError):
        return "the memory ran out"
    return str(error) if isinstance(error, Refused) else "its structure is broken"


if __name__ == "__main__":
    main()
