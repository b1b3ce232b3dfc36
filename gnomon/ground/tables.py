"""Tables of names that the package carries: a text file with a key and its names in each line."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


def table(file: str) -> dict[str, list[str]]:
    """The names of each key, of a file of `gnomon/data/`.

    >>> "use_np" in table("mxnet-names.txt")[""]
    True
    """
    rows = (line.partition(":") for line in (DATA / file).read_text(encoding="utf-8").splitlines())
    return {key: names.split() for key, _, names in rows}
