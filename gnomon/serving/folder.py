"""Models found in a folder: a file `NAME.toml` for each says what it is and how it is served."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gnomon.base import FormatError, GnomonError, MissingFileError, ParamError, complaint
from gnomon.ground.files import read_bytes
from gnomon.serving.model import Model

_FILES = ("symbol", "params")


def read_folder(folder: Path, options: Mapping[str, Any]) -> dict[str, Model]:
    """The models of a folder by name; `options` are for those whose file says nothing of them.

    `resnet.toml` holds fields of `Model` and `Options`, as `shapes = {data = [3, 224, 224]}` and
    `max_batch = 8`. Its files are `symbol` and `params`, or `resnet-symbol.json` and, of all
    `resnet-0012.params`, that of the last epoch; the epoch is the version then.

    Raises:
        GnomonError: there is no such folder or no model in it, or one of them cannot be loaded.
    """
    if not folder.is_dir():
        raise MissingFileError(f"serving: there is no folder {str(folder)!r}")
    found = {path.stem: read_model(path, options) for path in sorted(folder.glob("*.toml"))}
    if not found:
        raise GnomonError(f"serving: no model in {str(folder)!r}: expected files NAME.toml")
    return found


def read_model(path: Path, options: Mapping[str, Any]) -> Model:
    """The model that a file `NAME.toml` says.

    Raises:
        FormatError: a file that is no TOML.
        GnomonError: as `Model.load`.
    """
    try:
        given = tomllib.loads(read_bytes("serving", path).decode())
    except ValueError as error:
        raise FormatError(f"serving: {path}: {error}") from None
    if not isinstance(given.get("shapes"), dict):
        expected = "a table, as shapes = {data = [3, 224, 224]}"
        raise ParamError(complaint(str(path), "shapes", expected, repr(given.get("shapes"))))
    name, folder = path.stem, path.parent
    given.setdefault("symbol", f"{name}-symbol.json")
    if "params" not in given:
        epoch = last_epoch(folder, name)
        given["params"] = f"{name}-{epoch}.params"
        given.setdefault("version", str(int(epoch)))
    for key in (*_FILES, "version"):
        if not isinstance(given.get(key, ""), str):
            raise ParamError(complaint(str(path), key, "a string", repr(given[key])))
    symbol, params = (folder / given.pop(key) for key in _FILES)
    try:
        return Model.load(symbol, params, given.pop("shapes"), **{**options, **given})
    except GnomonError as error:
        raise type(error)(f"{path}: {error}") from error


def last_epoch(folder: Path, name: str) -> str:
    """The digits of the last epoch of a checkpoint.

    Raises:
        GnomonError: there is none.
    """
    ends = [path.stem.removeprefix(f"{name}-") for path in folder.glob("*.params")]
    epochs = [end for end in ends if end.isascii() and end.isdecimal()]
    if not epochs:
        raise MissingFileError(f"serving: no file {name}-0000.params in {str(folder)!r}")
    return max(epochs, key=int)
