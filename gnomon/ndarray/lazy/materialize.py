"""The usual wait by one native call: an array is asked for that is one operator's result, or there.

An array in memory that nothing writes is there. One that waits in its thread's group for a single
operator, whose kernel has a fast path, gets memory, has the kernel run and the group emptied, as
`fused.lone` and `FusionGroup._forget` do by Python's means. Anything else is left to the method in
Python, with nothing done: a chain, a result in place in memory it had before, a group that another
thread computes, an operand that is being written, an engine that observes or holds back.

Python's own lock is held all the while, so no other thread sees anything of it half done; where
there is none, Python's method does all. Memory is taken first, since other code may run meanwhile;
then everything is decided before anything is changed. What is let go of is dropped last, for the
same reason.
"""

from __future__ import annotations

from threading import get_ident

from gnomon.engine.current import is_unobserved
from gnomon.engine.fast_path import fire
from gnomon.engine.var import is_free
from gnomon.ground.record import put
from gnomon.native.serve import methods
from gnomon.native.words import Words, double_bits, native, scratch, single_bits
from gnomon.ndarray.core.array import Array, materialize_in
from gnomon.ndarray.core.chunk import Chunk, memory
from gnomon.ndarray.lazy.fusion_group import FusionGroup, emptied
from gnomon.ndarray.lazy.recipe import Recipe
from gnomon.ndarray.lazy.trace import TraceNode
from gnomon.runtime.once import once
from gnomon.runtime.statements.launch_code import DOUBLE, FLOAT

LARGE = 3.0e38  # numbers beyond, and NaN, take a closer look than native code has
_BY_PYTHON = Array.wait_to_read


@native
def _is_ours(group: FusionGroup, array: Array) -> bool:
    """Whether a group is open, holds nothing but `array`, and belongs to this thread.

    Then no other thread is about to do anything with it.
    """
    if array._pending_in is not group or group.closed or group.busy or group.eager:
        return False
    results = group.results
    if len(results) != 1 or results[0] is not array or group.in_place:
        return False
    ident: int = group.own.ident
    return ident == get_ident()


@native
def _are_noted(group: FusionGroup, address: int, fast_path: Words, integers: Words) -> bool:
    """Whether all that is read is free, and the integers of the fast path are noted.

    Those are the addresses of what is read, of the result, then numbers as their dtypes hold them.
    """
    read = group.read
    addresses = group.addresses
    count = len(read)
    for k in range(count):
        if not is_free(read[k]):
            return False
        integers[k] = addresses[k]
    integers[count] = address
    given = group.numbers
    row = Words(fast_path[7])
    for k in range(fast_path[6]):
        if row[0] >= len(given):
            return False
        number = float(given[row[0]])
        if row[1] == DOUBLE:
            integers[count + 1 + k] = double_bits(number)
        elif row[1] == FLOAT and number < LARGE and number > -LARGE:
            integers[count + 1 + k] = single_bits(number)
        else:
            return False
        row = row + 2
    return True


@native
def _ran_fast_path(
    array: Array, group: FusionGroup, trace: TraceNode, recipe: Recipe, chunk: Chunk
) -> bool:
    """Whether the only operator of a group was computed in new memory, and the group emptied."""
    if not _is_ours(group, array) or group.trace is not trace or not is_unobserved():
        return False
    if recipe.address is None:
        return False
    fast_path = Words(recipe.address)
    integers = scratch(fast_path[0])
    leaves = len(group.read)
    if leaves + 1 + fast_path[6] != fast_path[0] or len(group.addresses) != leaves:
        return False  # an interrupt may have left more
    if not _are_noted(group, chunk.address, fast_path, integers):
        return False
    fire(fast_path, integers)
    put(chunk, "version", 1)
    materialize_in(array, chunk, 0)
    emptied(group, True)
    return True


@native
def is_there(array: Array) -> bool:
    """Whether an array lies in memory that is not being written any more, computed if need be."""
    group = array._pending_in
    if group is None:
        return is_free(array._chunk) and is_unobserved()
    if type(group) is not FusionGroup:
        return False
    trace = group.trace
    recipe = trace.sole
    if not trace.single or recipe is None or recipe.address is None:
        return False
    return _ran_fast_path(array, group, trace, recipe, memory(group.ctx, trace.layout))


@native
def wait_to_read(array: Array) -> None:
    """Sleep until every write pushed so far is done.

    Raises:
        EngineError: a function that the elements depend on failed.
    """
    if not is_there(array):
        _BY_PYTHON(array)


@once
def native_wait() -> None:
    """From now on arrays are waited for by native code, where there may be such."""
    (made,) = methods((Array, wait_to_read))
    if made is not wait_to_read:
        Array.wait_to_read = made  # type: ignore[method-assign]
