"""`Model`: a network with its parameters, and how it is served."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from gnomon import dtype as dtypes
from gnomon import ndarray as nd
from gnomon import symbol as sym
from gnomon.base import ParamError, ShapeError, complaint
from gnomon.context import cpu
from gnomon.ground.record import record
from gnomon.module.checkpoint import read_params
from gnomon.serving.tensors import ANY, Shape, Spec, Values, checked_shape

Shapes = tuple[Shape, ...]  # of the inputs of one item, in their order


@record(slots=False)
class Options:
    """How a model is served.

    Args:
        batch: whether the first axis of every input and output counts items that do not depend
            on each other. Without it each request is computed alone, with the shapes as they are.
        max_batch: items that are computed at once at most, and that a request may have.
        max_delay_ms: how long a request waits for others to be computed with.
        workers: batches that are computed at the same time.
        queue_limit: requests that wait; further ones are refused with status 429.
        kept: bound executors that a worker keeps, one for each size of a batch and shape of items.
    """

    batch: bool = True
    max_batch: int = 32
    max_delay_ms: float = 2.0
    workers: int = 1
    queue_limit: int = 256
    kept: int = 64

    def __post_init__(self) -> None:
        for option in fields(self):
            value, low = getattr(self, option.name), 0 if option.name == "max_delay_ms" else 1
            kinds = {"bool": (bool,), "int": (int,), "float": (int, float)}[str(option.type)]
            if type(value) not in kinds or (option.name != "batch" and not low <= value < 1e9):
                expected = "True or False" if option.name == "batch" else f"a number from {low}"
                raise ParamError(complaint("serving", option.name, expected, repr(value)))

    def sizes(self) -> list[int]:
        """How many items batches are computed for: powers of two, and the most.

        >>> Options(max_batch=12).sizes(), Options(batch=False).sizes()
        ([1, 2, 4, 8, 12], [1])
        """
        most = self.max_batch if self.batch else 1
        return [1 << k for k in range((most - 1).bit_length())] + [most]


class Model:
    """A symbol with its parameters, as `Server` takes it.

    Args:
        symbol: the network.
        params: arrays by name, of arguments and auxiliary states, used as they are, not copied;
            `arg:` and `aux:` may stand in front of names.
        shapes: the shape of each input, without the axis of the batch; -1 for any size.
        dtypes: the dtype of inputs, where it does not follow from the parameters'.
        version: what clients know it by.
        options: fields of `Options`.

    Arguments whose names end in `label` and that have no shape here are zeros: prediction does not
    read them.

    >>> import gnomon as mx
    >>> x = mx.sym.Variable("x")
    >>> net = mx.sym.broadcast_mul(x, mx.sym.Variable("w"), name="y")
    >>> model = Model(net, {"w": mx.nd.ones((1, 3))}, {"x": (3,)}, max_batch=8)
    >>> model.inputs, model.outputs
    ((Spec(name='x', dtype=float32, shape=(-1, 3)),),
     (Spec(name='y_output', dtype=float32, shape=(-1, 3)),))

    Raises:
        ParamError: an input without a shape, a parameter that is missing, an option out of range.
        ShapeError: shapes that the network does not take, or outputs that do not grow as the
            batch does.
    """

    def __init__(
        self,
        symbol: Any,
        params: Mapping[str, Any],
        shapes: Mapping[str, Any],
        dtypes: Mapping[str, Any] | None = None,
        version: str = "1",
        **options: Any,
    ) -> None:
        try:
            self.options = Options(**options)
        except TypeError as error:
            raise ParamError(f"serving: {error}") from None
        self.symbol, self.version = symbol, version
        states = set(symbol.list_auxiliary_states())
        own = {name.removeprefix("arg:").removeprefix("aux:"): x for name, x in params.items()}
        names = symbol.list_arguments()
        self._params = {n: x.as_in_context(cpu()) for n, x in own.items() if n in names}
        self._states = {n: x.as_in_context(cpu()) for n, x in own.items() if n in states}
        self._items = {n: checked_shape(f"serving: input {n!r}", s) for n, s in shapes.items()}
        self._check_names(names, states)
        self._types = self._inferred_types(dtypes or {})
        self.inputs = tuple(
            Spec(n, self._types[n], self._whole(self._items[n], ANY)) for n in self._items
        )
        self.outputs = self._inferred_outputs()
        if self.fixed is not None:
            self.check_rows(self.fixed)

    @classmethod
    def load(cls, symbol: Any, params: Any, shapes: Mapping[str, Any], **given: Any) -> Model:
        """The model in the files `symbol` and `params`; the rest is as for `Model`.

        Raises:
            GnomonError: as `Model`, and where a file cannot be read.
        """
        net = sym.load(symbol)
        args, states = read_params(os.fspath(params))
        return cls(net, {**args, **states}, shapes, **given)

    def _check_names(self, names: list[str], states: set[str]) -> None:
        """Raises ParamError where the network lacks an input, or an input or parameter lacks."""
        for name in self._items:
            if name not in names or name in self._params:
                free = [n for n in names if n not in self._params]
                expected = f"inputs of the network: {', '.join(free)}"
                raise ParamError(complaint("serving", "shapes", expected, repr(name)))
        self._labels = [
            n
            for n in names
            if n not in self._params and n not in self._items and n.endswith("label")
        ]
        known = {*self._params, *self._items, *self._labels, *self._states}
        if missing := [n for n in (*names, *states) if n not in known]:
            expected = "a parameter, or a shape if it is an input"
            raise ParamError(complaint("serving", missing[0], expected, "neither"))
        if not self._items:
            raise ParamError(complaint("serving", "shapes", "the shape of an input", "none"))

    def _whole(self, item: Shape, rows: int) -> Shape:
        """The shape of `rows` items."""
        return (rows, *item) if self.options.batch else item

    @property
    def fixed(self) -> Shapes | None:
        """The shapes of an item, where no size is left to requests."""
        items = tuple(self._items.values())
        return None if any(ANY in item for item in items) else items

    def _given(self, rows: int, items: Shapes) -> dict[str, Shape]:
        """The shapes of everything that is known, for `rows` items; 0 is not known."""
        shapes = {n: x.shape for n, x in (*self._params.items(), *self._states.items())}
        pairs = zip(self._items, items, strict=True)
        shapes |= {n: self._whole(tuple(max(k, 0) for k in item), rows) for n, item in pairs}
        return shapes

    def _inferred_types(self, given: Mapping[str, Any]) -> dict[str, dtypes.DType]:
        """The dtype of each argument: as given, or as the parameters have it, or float32."""
        names = self.symbol.list_arguments()
        known = {**{n: x.dtype for n, x in self._params.items()}, **given}
        found, _, _ = self.symbol.infer_type_partial(**known)
        for name, kind in zip(names, found, strict=True):
            known.setdefault(name, kind or np.float32)
        found, self._out_types, _ = self.symbol.infer_type(**known)
        return dict(zip(names, map(dtypes.of, found), strict=True))

    def _inferred_outputs(self) -> tuple[Spec, ...]:
        """What the outputs are; sizes that depend on a request's are -1."""
        items = tuple(self._items.values())
        _, shapes, _ = self.symbol.infer_shape_partial(**self._given(0, items))
        names = self.symbol.list_outputs()
        rows = zip(names, self._out_types, shapes, strict=True)
        return tuple(Spec(n, dtypes.of(t), tuple(k or ANY for k in s)) for n, t, s in rows)

    def _inferred(self, rows: int, items: Shapes) -> tuple[list[Shape], list[Shape]]:
        """The shapes of arguments and outputs; ShapeError where they do not follow."""
        arguments, outputs, _ = self.symbol.infer_shape(**self._given(rows, items))
        if arguments is None:
            raise ShapeError(complaint("serving", "shapes", "enough to infer all", items))
        return arguments, outputs

    def check_rows(self, items: Shapes) -> None:
        """Raises ShapeError where an output does not grow as the batch does."""
        if not self.options.batch:
            return
        one, two = (self._inferred(rows, items)[1] for rows in (1, 2))
        for name, a, b in zip(self.symbol.list_outputs(), one, two, strict=True):
            if not a or b != (2 * a[0], *a[1:]):
                expected = f"twice {a} for two items, or batch=False"
                raise ShapeError(complaint("serving", name, expected, b))

    def bind(self, rows: int, items: Shapes, shared: Any = None) -> Bound:
        """An executor for `rows` items of these shapes, in the working memory of `shared`.

        Raises:
            GnomonError: shapes that the network does not take.
        """
        shapes, _ = self._inferred(rows, items)
        by_name = dict(zip(self.symbol.list_arguments(), shapes, strict=True))
        memory = {n: np.zeros(by_name[n], self._types[n].numpy) for n in self._items}
        arrays = dict(self._params)
        arrays |= {n: nd.zeros(by_name[n], dtype=self._types[n].name) for n in self._labels}
        # a view: what an array is made on is not written by that name any more
        arrays |= {n: nd.from_numpy(values.view()) for n, values in memory.items()}
        executor = self.symbol.bind(
            cpu(), arrays, grad_req="null", aux_states=self._states, shared_exec=shared
        )
        return Bound(rows, executor, memory)


class Bound:
    """An executor whose inputs are read where `inputs` lie."""

    def __init__(self, rows: int, executor: Any, inputs: dict[str, Values]) -> None:
        self.rows, self.executor, self.inputs = rows, executor, inputs

    def compute(self) -> dict[str, Values]:
        """The outputs for what `inputs` hold, as arrays of their own.

        Raises:
            GnomonError: an operator fails.
        """
        self.executor.forward_on(())
        outputs = self.executor.output_dict
        return {name: np.asarray(x.asnumpy()) for name, x in outputs.items()}
