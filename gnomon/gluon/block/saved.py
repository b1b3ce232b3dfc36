"""`Block.save` and `Block.load`: the structure of a model as JSON, and its parameters beside it.

The structure has an entry for each block, called by its kind and number: its name, the names by
which it knows the blocks inside, and, where it was traced, the symbol. A model that is loaded is
made by the same program as the one that was saved; its blocks take over names and traces.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from gnomon.base import FormatError
from gnomon.ground.files import path_of, read_bytes, replacing

TRACE = "in_format", "out_format", "inputs", "symbol"


def save(block: Any, prefix: str) -> None:
    """Write the two files of a model."""
    numbers = {id(b): k for k, b in enumerate(block._blocks())}
    entry = _entry(block, numbers)
    with replacing("Block.save", f"{path_of('Block.save', prefix)}-model.json") as stream:
        stream.write(json.dumps({_title(block, numbers): entry}).encode())
    block.save_parameters(f"{os.fspath(prefix)}-model.params")


def _title(block: Any, numbers: Mapping[int, int]) -> str:
    return f"{type(block).__name__.lower()}{numbers[id(block)]}"


def _entry(block: Any, numbers: Mapping[int, int]) -> dict[str, Any]:
    """The entry of a block, with those of blocks inside."""
    entry: dict[str, Any] = {"orig_name": block.name}
    entry.update(block._trace_record())
    entry["hybridized"] = "symbol" in entry
    entry["children"] = {child.name: name for name, child in block._children.items()}
    for child in block._children.values():
        entry[_title(child, numbers)] = _entry(child, numbers)
    return entry


def load(block: Any, prefix: str) -> None:
    """Take over the two files of a model.

    Raises:
        FormatError: they are no such files, or say other blocks.
    """
    path = f"{path_of('Block.load', prefix)}-model.json"
    try:
        found = json.loads(read_bytes("Block.load", path))
    except ValueError as error:
        raise FormatError(f"{path}: expected JSON of Block.save, got {error}") from error
    pairs = _paired(path, found, [(None, block)])
    for entry, one in pairs:
        _take(entry, one)
    block.load_parameters(f"{os.fspath(prefix)}-model.params")


def _paired(path: str, content: Any, blocks: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Each block with its entry."""
    rows = [] if not isinstance(content, dict) else list(content.items())
    entries = [(k, v) for k, v in rows if isinstance(v, dict) and "orig_name" in v]
    kinds = [k.rstrip("0123456789") for k, _ in entries]
    mine = [type(b).__name__.lower().rstrip("0123456789") for _, b in blocks]
    if kinds != mine:
        raise FormatError(f"{path}: expected the blocks {mine}, in this order, got {kinds}")
    found = []
    for (_, entry), (_, block) in zip(entries, blocks, strict=True):
        found += [(entry, block), *_paired(path, entry, list(block._children.items()))]
    return found


def _take(entry: dict[str, Any], block: Any) -> None:
    """Have a block be called as in the file, and know its trace."""
    block._rename(entry["orig_name"])
    if all(key in entry for key in TRACE):
        block._take_trace(entry)
