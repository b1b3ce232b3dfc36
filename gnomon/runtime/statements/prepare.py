"""From statements to steps: checked, cut at calls, safe against overlap, with temporaries.

A group of `Store`s means that all values are taken before anything is stored; `in_turn` takes
statements one after the other, and finds the groups that do the same. A destination that is
also read is written in place where every element is read just where it is stored; otherwise the
values go through a temporary. Temporaries come from the pool and live as long as the steps that use
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gnomon.base import DeviceError, DTypeError, Later, ParamError, ShapeError, complaint
from gnomon.expr.deferred import TRACED, values_asked
from gnomon.expr.layout import READERS, is_read_only
from gnomon.expr.node import MAPPER, Buffer
from gnomon.expr.pattern import steady
from gnomon.expr.rewrite import check_sizes
from gnomon.expr.term import compute_dtype
from gnomon.expr.walk import fits_any, postorder, shown
from gnomon.plan import scatter
from gnomon.plan.canonical import canonical
from gnomon.plan.cut import Invoke, Piece, are_apart, overlap
from gnomon.plan.fuse import fused, plain
from gnomon.plan.overlap import directed, mirrored, repeats
from gnomon.plan.sizes import told_apart
from gnomon.plan.split import by_parts
from gnomon.plan.statement import SAVERS, Store, Structure, identity, leaves_of
from gnomon.runtime.devices import device as devices
from gnomon.runtime.execution.program import Step
from gnomon.runtime.kernels.cache import CACHE
from gnomon.runtime.kernels.kernel import Kernel
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.kernels.workspace import NO_MEMORY, without_workspace
from gnomon.runtime.statements.backend import Backend

if TYPE_CHECKING:
    from gnomon.runtime.libraries import calls
    from gnomon.runtime.statements import gpu, transfer
else:  # a statement without a product needs no library, and few need a GPU
    calls = Later("gnomon.runtime.libraries.calls")
    gpu = Later("gnomon.runtime.statements.gpu")
    transfer = Later("gnomon.runtime.statements.transfer")

READERS["gpu"] = lambda buffer: transfer.fetched(buffer)  # noqa: PLW0108 loaded when asked
HOST = Backend(calls, temporary, CACHE.get, True)

__all__ = ["Store", "check", "in_turn", "pieces", "prepare"]


def prepare(stores: Sequence[Store], name: str = "kernel") -> list[Step]:
    """Steps that carry out a group of statements, in order.

    Raises:
        ShapeError, DTypeError: a value does not fit its destination; nothing has been written.
    """
    return steady(lambda: _now(stores, name))


def _now(stores: Sequence[Store], name: str) -> list[Step]:
    for store in stores:
        check(store)
    if any(0 in s.dest.shape for s in stores):
        _check_freed(stores)
        stores = [s for s in stores if 0 not in s.dest.shape]
    if not stores:
        return []
    every = postorder([e for s in stores for e in (s.value, s.dest)])
    leaves = [node for node in every if isinstance(node, Buffer)]
    check_leaves(leaves, stores)
    backend = backend_of(stores[0].dest)
    if any(leaf.address >= NO_MEMORY for leaf in leaves):  # a template makes its steps
        return _steps(stores, leaves, name, backend)
    return without_workspace(lambda: _steps(stores, leaves, name, backend))


def backend_of(dest: Buffer) -> Backend:
    """What carries out statements that store there."""
    return HOST if dest.device == "cpu" else gpu.backend(dest)


def _steps(
    stores: Sequence[Store], leaves: Sequence[Buffer], name: str, backend: Backend
) -> list[Step]:
    shape, maps = stores[0].dest.shape, not any(s.value.exp_type & ~MAPPER for s in stores)
    if maps and all(s.dest.shape == shape for s in stores):
        return _group(stores, Structure(stores), name, backend)
    steps: list[Step] = []
    for piece in scatter.pieces(stores, backend.libraries, backend.temporary, backend.has_order):
        if isinstance(piece, Invoke):
            made = backend.libraries.steps(piece)
            _hold(made, [b.owner for b in leaves])
            for step in made if backend is HOST else ():
                step.origin = piece
            steps.extend(made)
            continue
        # scratch memory may be empty as well, and then has no place that an index could mean
        filled = [s for s in piece if 0 not in s.dest.shape]
        if filled:
            apart = told_apart(filled)
            steps.extend(_group(apart, Structure(apart), name, backend))
    return steps


def in_turn(stores: Sequence[Store], name: str = "kernel") -> list[Step]:
    """Steps that carry out statements one after the other; neighbours share a loop where they can.

    >>> import numpy as np
    >>> from gnomon.expr.node import Buffer, Scalar
    >>> m, w = (np.ones(3, np.float32) for _ in range(2))
    >>> a, b = (Buffer((3,), address=x.ctypes.data, owner=x) for x in (m, w))
    >>> halve = Store(a, "multo", Scalar(0.5, a.dtype))
    >>> for step in in_turn([halve, Store(b, "minusto", a)]):
    ...     step.run()
    >>> m, w
    (array([0.5, 0.5, 0.5], dtype=float32), array([0.5, 0.5, 0.5], dtype=float32))

    Raises:
        ShapeError, DTypeError: a value does not fit its destination; nothing has been written.
    """
    for store in stores:
        check(store)
    return [step for group in fused(stores) for step in prepare(group, name)]


def pieces(stores: Sequence[Store]) -> list[Piece]:
    """What `prepare` would run: groups for kernels, and calls; for looking at."""
    for store in stores:
        check(store)
    backend = backend_of(stores[0].dest)
    return scatter.pieces(stores, backend.libraries, backend.temporary, backend.has_order)


def check(store: Store) -> None:
    """Raises where a statement's parts do not fit: before anything is written."""
    dest, value = store.dest, store.value
    if store.saver not in SAVERS and not scatter.puts(store.saver, value):
        expected = f"one of {', '.join(SAVERS)}"
        raise ValueError(complaint("assignment", "saver", expected, store.saver))
    if value.shape != dest.shape and not fits_any(value):
        expected = f"shape {dest.shape} of the destination"
        raise ShapeError(complaint("assignment", "value", expected, shown(value)))
    if value.dtype is not dest.dtype:
        expected = f"dtype {dest.dtype.name} of the destination"
        message = complaint("assignment", "value", expected, shown(value))
        raise DTypeError(f"{message}; convert with tcast")
    if is_read_only(dest.owner):
        got = f"{dest!r} over read-only memory"
        raise ParamError(complaint("assignment", "destination", "memory to write to", got))
    if not dest.contiguous and repeats(dest):
        got = f"{dest!r} with strides {dest.strides}"
        expected = "elements that do not share memory"
        raise ShapeError(complaint("assignment", "destination", expected, got))


def _check_freed(stores: Sequence[Store]) -> None:
    """Raises where a tensor whose memory was given back is used: it has no elements, either."""
    for buffer in leaves_of([e for s in stores for e in (s.dest, s.value)]):
        if buffer.freed:
            got = f"{buffer!r}, which was freed"
            raise ParamError(complaint("assignment", "operand", "one with memory", got))


def check_leaves(leaves: Sequence[Buffer], stores: Sequence[Store]) -> None:
    """Raises where an operand lies nowhere, elsewhere, or has another shape than it had."""
    for buffer in leaves:
        if buffer.device == TRACED:
            raise values_asked(buffer.owner, buffer)
        if not buffer.settled:
            check_sizes([s.value for s in stores])
        if not buffer.address and 0 not in buffer.shape:
            raise ParamError(complaint("assignment", "operand", "one with memory", f"{buffer!r}"))
        if not devices.find(buffer.device).runs or buffer.device != stores[0].dest.device:
            expected = f"data on {stores[0].dest.device}, which runs kernels"
            got = f"{buffer!r} on {buffer.device}"
            raise DeviceError(complaint("assignment", "operand", expected, got))


def _hold(steps: Sequence[Step], owners: Sequence[object]) -> None:
    """Have steps of a library keep owners: a tensor may take other memory before they are done."""
    for step in steps:
        if Kernel.of(step) is None:
            step.keep = (step.keep, owners)
        else:
            step.keep[4].extend(owners)


def _group(
    stores: Sequence[Store], structure: Structure, name: str, backend: Backend
) -> list[Step]:
    if backend is HOST and (parts := by_parts(stores)):
        return [x for s in parts for x in _group([s], Structure([s]), name, backend)]
    few = canonical(stores, structure)
    if few is not stores:
        stores, structure = few, Structure(few)
    kernel = backend.kernel(stores, structure)
    if not clashes(stores, structure, kernel.signature.scattered):
        return [kernel.bind(structure, name)]
    in_place = _in_order(stores, name, backend)
    if in_place is not None:
        return [in_place]
    paired = _by_pairs(stores, name, backend)
    if paired is not None:
        return paired
    whole = _rounding_once(stores)
    values = [Store(backend.temporary(s.dest), "saveto", s.value) for s in whole]
    results = [Store(s.dest, s.saver, v.dest) for s, v in zip(whole, values, strict=True)]
    steps: list[Step] = []
    for group in (values, *([r] for r in results)):
        own = Structure(group)
        steps.append(backend.kernel(group, own).bind(own, name))
    return steps


def _rounding_once(stores: Sequence[Store]) -> Sequence[Store]:
    """The same with updates of half floats as parts of the values, which temporaries round."""
    if not are_apart(stores):
        return stores
    return [s if compute_dtype(s.dest.dtype) is s.dest.dtype else plain(s) for s in stores]


def _by_pairs(stores: Sequence[Store], name: str, backend: Backend) -> list[Step] | None:
    """The steps of a map of its own mirror image, an element and its image at once."""
    if len(stores) > 1 or stores[0].value.exp_type & ~MAPPER:
        return None
    groups = mirrored(stores[0])
    if groups is None:
        return None
    steps: list[Step] = []
    for group in groups:
        structure = Structure(group)
        if len(group) == 1:
            steps.extend(_group(group, structure, name, backend))
            continue
        kernel = backend.kernel(group, structure)
        if {structure.slot(s.dest) for s in group} & kernel.signature.scattered:
            return None
        steps.append(kernel.bind(structure, name))  # halves share no element, if rows interleave
    return steps


def _in_order(stores: Sequence[Store], name: str, backend: Backend) -> Step | None:
    """The step of a map that is safe in place when one thread walks through it in order."""
    if len(stores) > 1 or stores[0].value.exp_type & ~MAPPER or not backend.has_order:
        return None
    store = directed(stores[0])
    if store is None:
        return None
    structure = Structure([store])
    kernel = CACHE.get([store], structure)
    if any(loops.columns for loops in kernel.signature.phases):  # walks by columns, not in order
        return None
    return kernel.bind(structure, name, in_order=True)


def clashes(stores: Iterable[Store], structure: Structure, scattered: frozenset[int]) -> bool:
    """Whether storing in place would overwrite what is still to be read, or another destination.

    `scattered`: the leaves that are read elsewhere than where is stored.
    """
    dests = [s.dest for s in stores]
    slots = {structure.slot(d) for d in dests}
    if slots & scattered:
        return True
    if len(slots) < len(dests):
        return True
    return any(
        other is not dest and overlap(dest, other) and identity(dest) != identity(other)
        for dest in dests
        for other in structure.buffers
    )
