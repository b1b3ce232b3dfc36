"""The generic test of an operator: values, gradients, inference and requests of any instance.

    check(find("tanh")(), [np.linspace(-2, 2, 7)], reference=np.tanh)

Values come from the oracle, so a failure here is the declaration's fault and not the compiler's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from gnomon import dtype as dt
from gnomon.base import DTypeError, ParamError
from gnomon.dtype import DType
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.oracle import evaluate_all
from gnomon.ops.case import Case
from gnomon.ops.classic import RecordOperator
from gnomon.ops.host import HostOp
from gnomon.ops.infer import Shape, known
from gnomon.ops.op import Op
from gnomon.ops.property import OpContext
from gnomon.ops.requests import OpReqType, kAddTo, kNullOp, kWriteInplace, kWriteTo
from gnomon.shadow import TBlob

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]
STEP = 1e-6
FEW = 12  # elements of an input whose gradients are looked at one by one


def leaf(array: Array) -> Buffer:
    """A buffer over the memory of `array`, which must be dense."""
    dense = np.ascontiguousarray(array).reshape(array.shape)
    return Buffer(dense.shape, dt.of(dense.dtype), address=dense.ctypes.data, owner=dense)


class FixedRandom:
    """Draws that are the same each time: what `forward` asks for, in the order it asks."""

    def __init__(self, seed: int = 0) -> None:
        self.generator = np.random.default_rng(seed)

    def uniform(self, shape: Shape, dtype: DType) -> Expr:
        """Numbers from 0 to 1."""
        return leaf(self.generator.uniform(size=shape).astype(dtype.numpy))

    def normal(self, shape: Shape, dtype: DType) -> Expr:
        """Numbers of the normal distribution."""
        return leaf(self.generator.normal(size=shape).astype(dtype.numpy))

    def reserve(self, count: int) -> tuple[int, int]:
        """What a generator of NumPy's is made from."""
        return 5, 0


def forward(op: Op, inputs: Arrays, train: bool = False) -> list[Array]:
    """Every output of `op` on arguments and states: by the oracle, or as it runs on data."""
    if not op.is_expression:
        return stored_outputs(op, inputs, kWriteTo, train)
    values = op.apply([leaf(x) for x in inputs], train=train, random=FixedRandom())
    return evaluate_all(values)


def backward(
    op: Op, inputs: Arrays, out_grads: Sequence[Array | None], train: bool = False
) -> list[Array | None]:
    """The gradient of every argument of `op`: by the oracle, or as it runs on data."""
    if not op.is_expression:
        made = forward(op, inputs, train)
        heads = [
            np.zeros_like(y) if g is None else g for y, g in zip(made, out_grads, strict=False)
        ]
        return list(stored_gradients(op, inputs, made, heads, kWriteTo, train))
    outputs = [leaf(y) for y in forward(op, inputs, train)]
    leaves = [None if g is None else leaf(g) for g in out_grads]
    grads = op.backward(leaves, [leaf(x) for x in inputs], outputs, train=train)
    found = iter(evaluate_all([g for g in grads if g is not None]))
    return [None if g is None else next(found) for g in grads]


def check(
    op: Op,
    inputs: Arrays,
    reference: Callable[..., Any] | None = None,
    *,
    differentiable: Sequence[int] | None = None,
    train: bool = False,
    tolerance: float = 1e-5,
) -> None:
    """Everything that holds for any operator, in float64: AssertionError says what does not.

    `reference` gives the outputs by NumPy; `differentiable` are the arguments whose gradient is
    compared with finite differences (by default all of floating dtype, none if empty).
    """
    wide = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in inputs]
    check_inference(op, inputs, train)
    if reference is not None:
        check_values(op, wide, reference(*wide), train, tolerance)
    check_gradient(op, wide, differentiable, train, tolerance)


def vanishes(cls: type[Op]) -> bool:
    """Whether an operator says that its gradients are 0, whatever its outputs are."""
    said = cls.gradient
    return said is not None and inspect.unwrap(said) is Op.without_gradient


def check_case(cls: type[Op], case: Case) -> None:
    """Everything that holds for any operator, on one of its cases; `docs/operators.md` says more.

    In float64 against its `reference` and finite differences, compiled in float32 with all four
    requests, and in float16 where it takes that.
    """
    op, arrays = cls.parse(case.params), case.arrays()
    reference = None if op.reference is None else op.reference
    differentiable = () if op.is_random or vanishes(cls) else case.differentiable
    check(
        op,
        arrays,
        reference,
        differentiable=differentiable,
        train=case.train,
        tolerance=case.tolerance,
    )
    tolerance = max(case.tolerance, 2e-5)
    check_storing(op, as_dtype(arrays, "float32"), case.train, 10 * tolerance)
    half = as_dtype(arrays, "float16")
    try:
        op.infer_type([dt.of(x.dtype) for x in half[: len(op.arguments())]])
    except (DTypeError, ParamError):
        return
    check_storing(op, half, case.train, max(case.tolerance, 2e-2), [kWriteTo])


def as_dtype(arrays: Arrays, dtype: str) -> list[Array]:
    """Arrays with those of floats in another dtype."""
    return [x.astype(dtype) if x.dtype.kind == "f" else x for x in arrays]


def check_values(
    op: Op, inputs: Arrays, expected: Any, train: bool = False, tolerance: float = 1e-5
) -> None:
    """The visible outputs are `expected` (one array, or a sequence of them)."""
    several = isinstance(expected, (tuple, list))
    wanted = list(expected) if several else [expected]
    found = forward(op, inputs, train)[: op.num_visible_outputs]
    assert len(found) == len(wanted), f"{op!r}: {len(found)} outputs, expected {len(wanted)}"
    for name, y, w in zip(op.outputs(), found, wanted, strict=False):
        message = f"{op!r}: output {name}"
        assert (y.shape, y.dtype) == (w.shape, w.dtype), message
        np.testing.assert_allclose(y, w, tolerance, tolerance, err_msg=message)


def check_inference(op: Op, inputs: Arrays, train: bool = False) -> None:
    """Inference says the shapes and dtypes that the expressions have, of gradients as well."""
    n = len(op.arguments())
    shapes, kinds = [x.shape for x in inputs], [dt.of(x.dtype) for x in inputs]
    sizes, types = op.infer_shape(shapes[:n], zero_unknown=False), op.infer_type(kinds[:n])
    assert sizes[0] + sizes[2] == shapes, f"{op!r}: inferred {sizes} of {shapes}"
    assert types[0] + types[2] == kinds, f"{op!r}: inferred {types} of {kinds}"
    check_partial(op, shapes[:n])
    if not op.is_expression:
        found = [(y.shape, dt.of(y.dtype)) for y in forward(op, inputs, train)]
        pairs = zip(sizes[1], types[1], found, strict=True)
        agree = all(t is y[1] and _agree(s and _unsigned(s), y[0]) for s, t, y in pairs)
        assert agree, f"{op!r}: inferred {sizes[1]}, {types[1]}, found {found}"
        return
    values = op.apply([leaf(x) for x in inputs], train=train, random=FixedRandom())
    told_of = list(zip(sizes[1], types[1], strict=True))
    told_by = [(v.shape, v.dtype) for v in values]
    assert told_of == told_by, f"{op!r}: inferred {told_of}, the expressions have {told_by}"
    grads = op.backward(
        values[: op.num_visible_outputs], [leaf(x) for x in inputs], values, train=train
    )
    assert len(grads) == n, f"{op!r}: {len(grads)} gradients of {n} arguments"
    for name, x, g in zip(op.arguments(), inputs, grads, strict=False):
        same = g is None or (g.shape, g.dtype) == (x.shape, dt.of(x.dtype))
        assert same, f"{op!r}: gradient of {name} is {g!r}"


def check_partial(op: Op, shapes: Sequence[Shape]) -> None:
    """Knowing less never infers anything else."""
    if any(0 in s for s in shapes):
        return
    whole = op.infer_shape(shapes)
    for k, shape in enumerate(shapes):
        lesser: list[Shape | None] = [None]
        lesser += [(*shape[:a], 0, *shape[a + 1 :]) for a in range(len(shape))]
        for less in lesser:
            part = op.infer_shape([*shapes[:k], less, *shapes[k + 1 :]])
            if less is None:  # where several shapes are allowed, one is the default
                part[0][k] = None
            agree = all(map(_agree, chain(*part), chain(*whole)))
            assert agree, f"{op!r}: with {op.arguments()[k]} {less} inferred {part}, else {whole}"


def _unsigned(shape: Shape) -> Shape:
    """A shape with 0 for what is not known, as at the border."""
    return tuple(max(d, 0) for d in shape)


def _agree(told: Shape | None, full: Shape | None) -> bool:
    if told is None or full is None:
        return True
    return len(told) == len(full) and all(a in (0, b) for a, b in zip(told, full, strict=True))


def check_gradient(
    op: Op,
    inputs: Arrays,
    which: Sequence[int] | None = None,
    train: bool = False,
    tolerance: float = 1e-5,
) -> None:
    """The gradients are what finite differences say; a gradient of None must be 0."""
    arguments = range(len(op.arguments()))
    which = [k for k in arguments if inputs[k].dtype.kind == "f"] if which is None else which
    if not which:
        return
    generator = np.random.default_rng(1)
    outputs = forward(op, inputs, train)[: op.num_visible_outputs]
    heads = [np.asarray(generator.normal(size=y.shape), y.dtype) for y in outputs]
    grads = backward(op, inputs, heads, train)
    for k in which:
        grad = np.zeros(inputs[k].shape) if grads[k] is None else grads[k]
        for along in directions(inputs[k].shape, generator):
            numeric = finite_difference(op, list(inputs), heads, k, along, train)
            found = float((grad * along).sum())
            message = f"{op!r}: gradient of {op.arguments()[k]} along\n{along}"
            np.testing.assert_allclose(found, numeric, tolerance, 10 * tolerance, err_msg=message)


def directions(shape: tuple[int, ...], generator: np.random.Generator) -> Iterator[Array]:
    """Along each of a few elements; of more of them one along all together stands for the rest."""
    size = int(np.prod(shape))
    few = np.arange(size) if size <= FEW else generator.choice(size, FEW, replace=False)
    for place in few:
        yield (np.arange(size) == place).reshape(shape).astype(float)
    if size > FEW:
        every = generator.normal(size=shape)
        yield every / np.linalg.norm(every)


def finite_difference(
    op: Op, inputs: list[Array], heads: Arrays, k: int, along: Array, train: bool
) -> float:
    """What a small change of input `k` in a direction does to the outputs weighted by `heads`."""

    def weighted(x: Array) -> float:
        ys = forward(op, [*inputs[:k], x, *inputs[k + 1 :]], train)
        return float(sum((y * g).sum() for y, g in zip(ys, heads, strict=False)))

    step = (STEP * along).astype(inputs[k].dtype)
    return (weighted(inputs[k] + step) - weighted(inputs[k] - step)) / (2 * STEP)


def check_storing(
    op: Op,
    inputs: Arrays,
    train: bool = False,
    tolerance: float = 1e-6,
    requests: Sequence[OpReqType] = tuple(OpReqType),
) -> None:
    """Compiled code stores outputs and gradients as `requests` say, by default each of the four.

    This is the check of the compiler on this operator: it is held to the oracle.
    """
    outputs = forward(op, inputs, train)
    heads = [np.ones_like(y) for y in outputs[: op.num_visible_outputs]]
    grads = backward(op, inputs, heads, train)
    zeros = [np.zeros_like(x) for x in inputs[: len(grads)]]
    grads = [z if g is None else g for g, z in zip(grads, zeros, strict=True)]
    for request in requests:
        found = stored_outputs(op, inputs, request, train)
        _compare(f"{op!r}: outputs, {request.name}", request, found, outputs, tolerance)
        found = stored_gradients(op, inputs, outputs, heads, request, train)
        _compare(f"{op!r}: gradients, {request.name}", request, found, grads, tolerance)


def _compare(
    what: str, request: OpReqType, found: Arrays, values: Sequence[Any], tolerance: float
) -> None:
    for y, value in zip(found, values, strict=True):
        before = np.ones_like(value)
        told = {kNullOp: before, kAddTo: before + value}.get(request, value)
        np.testing.assert_allclose(y, told, tolerance, tolerance, err_msg=what)


def stored_outputs(op: Op, inputs: Arrays, request: OpReqType, train: bool) -> list[Array]:
    """What lies in the outputs, which held 1, after a forward with `request` for each."""
    n = len(op.arguments())
    shapes, kinds = [x.shape for x in inputs[:n]], [dt.of(x.dtype) for x in inputs[:n]]
    outs, types = op.infer_shape(shapes, zero_unknown=False)[1], op.infer_type(kinds)[1]
    if isinstance(op, HostOp) and not all(map(known, outs)):  # values decide
        outs = [y.shape for y in op.results(inputs, {"train": train})]
    held = [x.copy() for x in inputs]
    told = [np.ones(s or (), t.numpy) for s, t in zip(outs, types, strict=True) if t]
    if request is kWriteInplace:
        for i, o in op.inplace(tuple(shapes), tuple(kinds))[:1]:
            told[o] = held[i].view(told[o].dtype)
    data = [TBlob(x) for x in held]
    context = OpContext(train, requested=(_Resource(),))
    requests = [request] * len(told)
    blobs = [TBlob(y) for y in told]
    RecordOperator(op).forward(context, data[:n], requests, blobs, data[n:])
    return told


def stored_gradients(
    op: Op, inputs: Arrays, outputs: Arrays, heads: Arrays, request: OpReqType, train: bool
) -> list[Array]:
    """What lies in the gradients, which held 1, after a backward with `request` for each."""
    n = len(op.arguments())
    told = [np.ones_like(x) for x in inputs[:n]]
    data, outs, given = ([TBlob(x.copy()) for x in part] for part in (inputs, outputs, heads))
    grads = [TBlob(g) for g in told]
    requests = [kWriteTo if request is kWriteInplace else request] * n
    context = OpContext(train)
    RecordOperator(op).backward(context, given, data[:n], outs, requests, grads, data[n:])
    return told


class _Resource:
    """Gives the same numbers as the oracle was given."""

    def get_random(self) -> FixedRandom:
        return FixedRandom()
