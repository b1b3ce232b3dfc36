"""Views: a buffer's memory under other sizes and strides."""

from __future__ import annotations

from collections.abc import Sequence

from gnomon.expr.node import Buffer


def view_of(
    src: Buffer, shape: Sequence[int], strides: Sequence[int], offset: int = 0
) -> Buffer | None:
    """The elements of `src` from `offset` on; None where its memory is not known yet."""
    if not src.address:
        return None
    address = src.address + offset * src.dtype.size
    # what owns the memory, not the handle: a container may take other memory later
    owner = src if src.owner is None else src.owner
    return Buffer(shape, src.dtype, strides, address, owner, src.device)
