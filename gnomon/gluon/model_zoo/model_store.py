"""Files with the parameters of known networks, in a local folder: nothing is fetched."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gnomon.base import FormatError

__all__ = ["get_model_file", "load_pretrained", "purge"]

ROOT = str(Path("~") / ".mxnet" / "models")


def get_model_file(name: str, root: str = ROOT) -> str:
    """The path of the parameters of the network called `name` in the folder `root`.

    The file is `name.params`, or `name-0a1b2c3d.params` as MXNet names what it fetched.

    Raises:
        FileNotFoundError: there is none.
    """
    folder = Path(root).expanduser()
    own = folder / f"{name}.params"
    if own.is_file():
        return str(own)
    hashed = re.compile(re.escape(name) + r"-[0-9a-f]{8}\.params")
    found = sorted(p for p in folder.glob(f"{name}-*.params") if hashed.fullmatch(p.name))
    if found:
        return str(found[0])
    raise FileNotFoundError(
        f"model_zoo: there are no parameters of {name!r} in {folder}: put {name}.params, or "
        f"MXNet's {name}-xxxxxxxx.params, there; nothing is fetched"
    )


def load_pretrained(net: Any, name: str, root: str, ctx: Any) -> None:
    """Give `net` the parameters in the file of `name`.

    Raises:
        FileNotFoundError: there is none.
        FormatError: it holds others.
    """
    path = get_model_file(name, root)
    try:
        net.load_parameters(path, ctx=ctx)
    except Exception as error:
        raise FormatError(f"model_zoo: {path} does not hold the parameters of {name}") from error


def purge(root: str = ROOT) -> None:
    """Delete all files of parameters in the folder `root`."""
    for path in Path(root).expanduser().glob("*.params"):
        path.unlink()
