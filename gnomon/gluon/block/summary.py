"""`Block.summary`: a table of what each block gave for some inputs, and of its parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

from gnomon.base import GnomonError
from gnomon.gluon.block.structure import flatten
from gnomon.shape import prod
from gnomon.symbol import Symbol

LINE = "{:>20}  {:>42} {:>15}"
WIDTH = 80


class Row(NamedTuple):
    """One block: its name in the table, the shape of what it gave, its parameters."""

    name: str
    shape: str
    params: list[Any]

    @property
    def size(self) -> int:
        """The number of elements of its parameters."""
        return sum(prod(p.shape or (0,)) for p in self.params)


def _indent(text: str, spaces: int) -> str:
    """`text` with spaces before all lines but the first: what a block prints of those inside.

    >>> _indent("Dense(\\n)", 2)
    'Dense(\\n  )'
    """
    return text.replace("\n", "\n" + " " * spaces)


def summarize(block: Any, inputs: tuple[Any, ...]) -> None:
    """Run `block` on `inputs`, and print the table.

    Raises:
        GnomonError: a block inside is hybridized, so that it runs as a whole.
    """
    rows = [Row("Input", _shapes(inputs), [])]

    def told(one: Any, _: Any, found: Any) -> None:
        if any(isinstance(x, Symbol) for x in flatten(found, "summary", "outputs")[0]):
            return  # the shapes of parameters are being inferred
        rows.append(Row(f"{type(one).__name__}-{len(rows)}", _shapes(found), [*_own(one)]))

    handles = []
    try:
        for one in block._blocks():
            if getattr(one, "_active", False):
                raise GnomonError(
                    f"summary: {one.name!r} is hybridized, and runs as a whole: call "
                    "hybridize(active=False) first"
                )
            if one._in_summary:
                handles.append(one.register_forward_hook(told))
        block(*inputs)
    finally:
        for handle in handles:
            handle.detach()
    print("\n".join(_table(rows)))


def _own(block: Any) -> list[Any]:
    return list(block.params.values())


def _shapes(values: Any) -> str:
    """The shape of an array, or those of several."""
    flat, _ = flatten(values, "summary", "inputs")
    shapes = [None if x is None else x.shape for x in flat]
    return str(shapes[0]) if len(shapes) == 1 else ", ".join(map(str, shapes))


def _table(rows: list[Row]) -> list[str]:
    every = [p for row in rows for p in row.params]
    unique = {id(p): p for p in every}.values()
    total, once = (sum(prod(p.shape) for p in ps) for ps in (every, unique))
    trained = sum(prod(p.shape) for p in every if p.grad_req != "null")
    return [
        "-" * WIDTH,
        LINE.format("Layer (type)", "Output Shape", "Param #"),
        "=" * WIDTH,
        *(LINE.format(row.name, row.shape, row.size) for row in rows),
        "=" * WIDTH,
        "Parameters in forward computation graph, duplicate included",
        f"   Total params: {total}",
        f"   Trainable params: {trained}",
        f"   Non-trainable params: {total - trained}",
        f"Shared params in forward computation graph: {total - once}",
        f"Unique parameters in model: {once}",
        "-" * WIDTH,
    ]
