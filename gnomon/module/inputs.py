"""Names and shapes of a module's inputs, checked against its symbol."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from gnomon.base import DTypeError, ParamError, ShapeError, complaint, nearest, shown
from gnomon.io import DataDesc

PARAMETER_ENDINGS = ("_weight", "_bias", "_gamma", "_beta")


def known_names(argument: str, names: Sequence[str] | None, arguments: Sequence[str]) -> list[str]:
    """`names` as a list; ParamError where the symbol has no argument of one of them."""
    for name in names or ():
        if name not in arguments:
            raise ParamError(_unknown(argument, name, arguments))
    return list(names or ())


def found_names(argument: str, names: Sequence[str] | None, arguments: Sequence[str]) -> list[str]:
    """Those of `names` that the symbol has; a warning tells of each other, as in MXNet."""
    for name in names or ():
        if name not in arguments:
            warnings.warn(_unknown(argument, name, arguments), stacklevel=4)
    return [name for name in names or () if name in arguments]


def check_input_names(symbol: Any, names: Sequence[str], typename: str, throw: bool) -> None:
    """Raises where the symbol has no argument of one of the names, or warns, unless `throw`.

    Modules of programs ask for this by MXNet's name.
    """
    check = known_names if throw else found_names
    check(f"{typename}_names", names, symbol.list_arguments())


def parse_data_desc(
    data_names: Sequence[str], label_names: Sequence[str], data_shapes: Any, label_shapes: Any
) -> tuple[list[DataDesc] | None, list[DataDesc] | None]:
    """The shapes of data and labels as DataDescs, checked; modules of programs ask for this."""
    labels = described("label_shapes", label_shapes, label_names, optional=True)
    return described("data_shapes", data_shapes, data_names), labels


def _unknown(argument: str, name: str, arguments: Sequence[str]) -> str:
    """What is told of a name that the symbol lacks."""
    inputs = [each for each in arguments if not each.endswith(PARAMETER_ENDINGS)]
    got = repr(name) + nearest(name, arguments)
    return complaint("Module", argument, f"arguments of the symbol, like {inputs}", got)


def work_loads(loads: Sequence[float] | None, devices: int) -> list[float]:
    """One load for each device, equal ones by default."""
    if devices < 1:
        raise ParamError(complaint("Module", "context", "at least one device", "none"))
    if loads is not None and len(loads) != devices:
        raise ParamError(complaint("Module", "work_load_list", f"{devices} numbers", loads))
    return list(loads or [1] * devices)


def described(
    argument: str, shapes: Any, names: Sequence[str], optional: bool = False
) -> list[DataDesc] | None:
    """The shapes as DataDescs in the order of `names`, which they must match.

    Optional ones may be left out, and may hold names that the symbol does not have.
    """
    try:
        descs = [as_desc(each) for each in shapes or ()]
    except TypeError:  # no sequence, or other things in it
        expected, got = "a list of DataDescs or of pairs (name, shape)", shown(shapes)
        raise ParamError(complaint("Module.bind", argument, expected, got)) from None
    if optional and not descs:
        return None
    given = {desc.name: desc for desc in descs}
    if sorted(given) != sorted(names) and not (optional and given.keys() >= set(names)):
        raise ParamError(complaint("Module.bind", argument, f"shapes for {list(names)}", descs))
    for desc in descs:
        if any(not isinstance(size, int) or size < 0 for size in desc.shape):
            raise ShapeError(complaint("Module.bind", desc.name, "a shape of ints", desc.shape))
    return descs


def as_desc(given: Any) -> DataDesc:
    """One input, given as a DataDesc or a pair of name and shape; its shape is a tuple."""
    desc = given if isinstance(given, DataDesc) else DataDesc(*given)
    if isinstance(desc.shape, tuple):
        return desc
    return DataDesc(desc.name, tuple(desc.shape), desc.dtype, desc.layout)


def resized(descs: Sequence[DataDesc], arrays: Sequence[Any]) -> list[DataDesc]:
    """The same inputs with the shapes of `arrays`."""
    if len(descs) != len(arrays):
        names = [desc.name for desc in descs]
        raise ParamError(
            complaint(
                "Module.forward", "data_batch", f"arrays for {names}", f"{len(arrays)} arrays"
            )
        )
    return [
        DataDesc(desc.name, tuple(array.shape), desc.dtype, desc.layout)
        for desc, array in zip(descs, arrays, strict=True)
    ]


def fits(descs: Sequence[DataDesc] | None, arrays: Sequence[Any]) -> bool:
    """Whether `arrays` have the shapes described."""
    return [desc.shape for desc in descs or ()] == [tuple(array.shape) for array in arrays]


def data_of(batch: Any) -> Sequence[Any]:
    """The data arrays of a batch.

    Raises:
        DTypeError: it has none.
    """
    arrays: Sequence[Any] | None = getattr(batch, "data", None)
    if arrays is None:
        expected = "a DataBatch, or what has a list of arrays as its attribute 'data'"
        got = f"a {type(batch).__name__}"
        raise DTypeError(complaint("Module.forward", "data_batch", expected, got))
    return arrays


def labels_of(batch: Any) -> Sequence[Any]:
    """The label arrays of a batch, which any object with `data` is, named tuples too."""
    return getattr(batch, "label", None) or ()
