"""Blocks one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

from gnomon.gluon.block import Block, HybridBlock
from gnomon.gluon.block.summary import _indent


class _Stacked:
    """What both kinds of stacks have: blocks in order."""

    _in_summary: ClassVar[bool] = False
    _children: dict[str, Block]
    prefix: str
    params: Any
    name_scope: Any

    def add(self, *blocks: Block) -> None:
        """Put blocks at the end."""
        for block in blocks:
            self.register_child(block)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        rows = "".join(f"  ({k}): {_indent(repr(v), 2)}\n" for k, v in self._children.items())
        return f"{type(self).__name__}(\n{rows})"

    def __getitem__(self, key: Any) -> Any:
        """The block of a number, or a stack of those of a slice."""
        found = list(self._children.values())[key]
        if not isinstance(key, slice):
            return found
        part = type(self)(prefix=self.prefix)  # type: ignore[call-arg]
        with part.name_scope():
            part.add(*found)  # type: ignore[misc]
        return part

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._children.values())

    def _passed(self, x: Any, args: tuple[Any, ...]) -> Any:
        """`x` and more through all blocks."""
        for block in self._children.values():
            x = block(x, *args)
            args = ()
            if isinstance(x, (tuple, list)):
                x, args = x[0], tuple(x[1:])
        return (x, *args) if args else x


class Sequential(_Stacked, Block):
    """Blocks one after the other.

    >>> import gnomon as mx
    >>> net = Sequential()
    >>> net.add(mx.gluon.nn.Dense(8, activation="relu"), mx.gluon.nn.Dense(2))
    >>> net.initialize()
    >>> net(mx.nd.ones((3, 4))).shape, len(net)
    ((3, 2), 2)
    """

    def forward(self, x: Any, *args: Any) -> Any:
        """What the last block gives; each gets what the one before gave."""
        return self._passed(x, args)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Compile the hybrid blocks inside, each on its own."""
        children = self._children.values()
        if children and active and all(isinstance(c, HybridBlock) for c in children):
            warnings.warn(
                f"{type(self).__name__} {self.prefix!r}: all blocks inside are hybrid ones: "
                "HybridSequential compiles them as one",
                stacklevel=2,
            )
        super().hybridize(active, **kwargs)


class HybridSequential(_Stacked, HybridBlock):
    """Hybrid blocks one after the other, compiled as one.

    >>> import gnomon as mx
    >>> net = HybridSequential()
    >>> net.add(mx.gluon.nn.Dense(8, activation="relu"), mx.gluon.nn.Dense(2))
    >>> net.initialize()
    >>> net.hybridize()
    >>> net(mx.nd.ones((3, 4))).shape
    (3, 2)
    """

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """What the last block gives; each gets what the one before gave."""
        return self._passed(x, args)
