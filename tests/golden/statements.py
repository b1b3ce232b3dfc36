"""Statements put to the same test in the real library and in gnomon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

FILES = ("sparse", "lookup", "edges")


def cases(name: str) -> list[str]:
    """The statements of a file."""
    lines = (Path(__file__).parent / f"{name}.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def operands(mx: Any) -> dict[str, Any]:
    """What the statements are about."""
    nd = mx.nd
    parts = [1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 2, 3]
    return {
        "mx": mx,
        "nd": nd,
        "np": np,
        "C": nd.sparse.csr_matrix(parts, shape=(3, 4)),
        "R": nd.sparse.row_sparse_array(([[1.0, 2.0], [3.0, 4.0]], [0, 2]), shape=(4, 2)),
        "D": nd.array(np.arange(1, 13).reshape(3, 4)),
        "D2": nd.array(np.arange(1, 9).reshape(4, 2)),
        "S": nd.array([[3, 1, 2, 0.5], [-1, 4, 0, 7], [5, -2, 6, 8]]),
    }


def run(mx: Any, case: str) -> list[dict[str, Any]]:
    """The arrays that a statement gives: storage, dtype, all elements, and which are kept."""
    names = operands(mx)
    *before, last = case.split(";;")
    for part in before:
        exec(part, names)
    found = eval(last, names)
    return [_said(x) for x in _flat(found)]


def _flat(found: Any) -> list[Any]:
    if not isinstance(found, (list, tuple)):
        return [found]
    return [x for each in found for x in _flat(each)]


def _said(x: Any) -> dict[str, Any]:
    """What an array says of itself, but not in which order columns stand."""
    said = {
        "stype": x.stype,
        "dtype": np.dtype(x.dtype).name,
        "shape": list(x.shape),
        "values": x.asnumpy().astype(np.float64).ravel().tolist(),
    }
    if x.stype != "default":
        said["kept"] = (x.indptr if x.stype == "csr" else x.indices).asnumpy().tolist()
    return said


def check(mx: Any, case: str, expected: list[dict[str, Any]] | None) -> None:
    """Fail unless a statement gives what is recorded; None is a refusal."""
    if expected is None:
        try:
            found = run(mx, case)
        except (mx.MXNetError, TypeError, IndexError):
            return
        raise AssertionError(f"not refused: {found}")
    found = run(mx, case)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        tolerance = 2e-3 if ours["dtype"] == "float16" else 2e-6
        wanted = theirs["values"]
        np.testing.assert_allclose(ours["values"], wanted, tolerance, 1e-6, equal_nan=True)
        assert {**ours, "values": 0} == {**theirs, "values": 0}
