"""_foreach, _while_loop, _cond: operators that compute graphs of their own, as often as they need.

A body is a graph (`gnomon.graph.body.Body`) with variables by number; parameters that end on `locs`
say which of them gets what. The executor, which alone can run a graph, has what runs them. Bodies
stand in model files beside a node's attributes, not among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError, complaint, shown
from gnomon.dtype import DType
from gnomon.ground.lock import load_module
from gnomon.ops.derive import Needs
from gnomon.ops.infer import UNKNOWN, Partly, Shape, check_count, from_border, to_border
from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, count, param

Known = list[Any]


class Body(Protocol):
    """A graph with variables and outputs by number."""

    @property
    def num_inputs(self) -> int:
        """How many variables it has."""

    @property
    def num_outputs(self) -> int:
        """How many outputs it has."""

    @property
    def changed(self) -> frozenset[int]:
        """Which variables it changes."""

    def infer(self, kind: str, known: Sequence[Any]) -> tuple[Known, Known]:
        """What follows of `shapes` or `types` for variables and outputs."""


def two_of(where: str, argument: str, given: Any, expected: str) -> tuple[Any, Any]:
    """Both things that a step of a loop gave; an array of two rows is one thing.

    >>> two_of("foreach", "body", 3, "outputs and states")
    Traceback (most recent call last):
    gnomon.base.ParamError: foreach: argument 'body': expected outputs and states, got 3
    """
    if not isinstance(given, (list, tuple)) or len(given) != 2:
        raise ParamError(complaint(where, argument, expected, shown(given)))
    return given[0], given[1]


class Fact:
    """Shapes or dtypes: what is known of the same thing from two sides, and along a first axis."""

    def __init__(self, where: str, kind: str) -> None:
        self.where, self.kind = where, kind

    def merge(self, what: str, a: Any, b: Any) -> Any:
        """Both in one.

        Raises:
            ShapeError, DTypeError: they contradict.
        """
        if a is None or b is None or a == b:
            return b if a is None else a
        if self.kind == "types":
            raise DTypeError(complaint(self.where, what, a.name, b.name))
        pairs = list(zip(a, b, strict=False))
        if len(a) != len(b) or any(x != y and UNKNOWN not in (x, y) for x, y in pairs):
            raise ShapeError(complaint(self.where, what, f"shape {a}", b))
        return tuple(max(pair) for pair in pairs)

    def rows(self, wholes: Sequence[Any]) -> int:
        """How many parts all of these have, or UNKNOWN.

        Raises:
            ShapeError: one has more than another.
        """
        sizes = {s[0] for s in wholes if s} - {UNKNOWN} if self.kind == "shapes" else set()
        if len(sizes) > 1:
            raise ShapeError(complaint(self.where, "data", "as many parts of each", wholes))
        return next(iter(sizes), UNKNOWN)

    def part(self, whole: Any) -> Any:
        """What a step gets of a whole; a single element has shape (1,)."""
        return whole if whole is None or self.kind == "types" else whole[1:] or (1,)

    def whole(self, part: Any, rows: int) -> Any:
        """What so many steps make."""
        return part if part is None or self.kind == "types" else (rows, *part)


class Control(Op):
    """What they share: bodies, inputs by number, and that all of it works on data."""

    roles: ClassVar[tuple[str, ...]] = ()  # what its bodies are called
    open_inputs = interleaved = True
    num_args: int = count(doc="Inputs and bodies.")
    num_outputs: int = param(low=0, doc="Outputs.")
    subgraphs: tuple[Any, ...]

    def __init__(self, **given: Any) -> None:
        bodies = tuple(given.pop("subgraphs", ()))
        if len(bodies) != len(self.roles) or any(isinstance(body, str) for body in bodies):
            expected = f"graphs of {' and '.join(self.roles)}"
            raise ParamError(complaint(self.name, "subgraphs", expected, shown(bodies)))
        self.__dict__["subgraphs"] = bodies
        super().__init__(**given)
        self.__dict__["_key"] += bodies

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        return cls(**given)

    def with_parameters(self, given: Mapping[str, Any]) -> Op:
        return type(self).parse({**given, "subgraphs": self.subgraphs})

    def check(self) -> None:
        size = self.num_args - len(self.roles)
        for body, places in self.fed():
            if len(places) != body.num_inputs or not all(0 <= k < size for k in places):
                expected = f"{body.num_inputs} numbers of inputs below {size}"
                raise ParamError(complaint(self.name, "locs", expected, places))

    def fed(self) -> Iterator[tuple[Any, tuple[int, ...]]]:
        """Each body, and for each of its variables the number of the input that it gets."""
        raise NotImplementedError(f"{self.name}: says nothing of fed")

    # What goes in and comes out -------------------------------------------------------------

    def called(self) -> tuple[str, ...]:
        return tuple(f"arg{k}" for k in range(self.num_args - len(self.roles)))

    def auxiliary(self) -> tuple[str, ...]:
        changed = {places[k] for body, places in self.fed() for k in body.changed}
        return tuple(f"arg{k}" for k in sorted(changed))

    def arguments(self) -> tuple[str, ...]:
        states = self.auxiliary()
        return tuple(name for name in self.called() if name not in states)

    @property
    def order(self) -> list[int]:
        """The number of each argument, then of each state."""
        return [int(name.removeprefix("arg")) for name in self.inputs()]

    def outputs(self) -> tuple[str, ...]:
        if self.num_outputs == 1:
            return ("output",)
        return tuple(f"output{k}" for k in range(self.num_outputs))

    # What follows ---------------------------------------------------------------------------

    def learn(self, fact: Fact, ins: Known, outs: Known) -> None:
        """Enter what the bodies say of inputs and outputs, by number."""
        raise NotImplementedError(f"{self.name}: says nothing of learn")

    def infer_shape(
        self, in_shapes: Partly, out_shapes: Partly | None = None, *, zero_unknown: bool = True
    ) -> tuple[Known, Known, Known]:
        """As `Op.infer_shape`."""
        both = (in_shapes, out_shapes or ())
        ins, outs = ([from_border(s, zero_unknown) for s in part] for part in both)
        found = self._inferred(Fact(self.name, "shapes"), ins, outs)
        a, b, c = ([to_border(s, zero_unknown) for s in part] for part in found)
        return a, b, c

    def infer_type(
        self, in_types: Sequence[DType | None], out_types: Sequence[DType | None] | None = None
    ) -> tuple[Known, Known, Known]:
        return self._inferred(Fact(self.name, "types"), list(in_types), list(out_types or ()))

    def _inferred(self, fact: Fact, given: Known, outs: Known) -> tuple[Known, Known, Known]:
        check_count(self.name, self.arguments(), len(given))
        count, order = len(given), self.order
        ins: Known = [None] * len(order)
        for k, value in zip(order, given, strict=False):
            ins[k] = value
        outs = outs + [None] * (self.num_outputs - len(outs))
        before = None
        while before != (ins, outs):
            before = list(ins), list(outs)
            self.learn(fact, ins, outs)
        found = [ins[k] for k in order]
        return found[:count], outs, found[count:]

    def follow(self, fact: Fact, which: int, ins: Known, parts: Sequence[int] = ()) -> Known:
        """Enter what a body says of the inputs that it gets; what it says of its outputs.

        `parts` are the inputs of which it gets a part at a time.
        """
        body, places = list(self.fed())[which]
        known = [fact.part(ins[k]) if k in parts else ins[k] for k in places]
        found, made = body.infer(fact.kind, known)
        for k, value in zip(places, found, strict=True):
            if k not in parts:
                ins[k] = fact.merge(f"arg{k}", ins[k], value)
            elif fact.kind == "types" or (ins[k] is not None and len(ins[k]) > 1):
                rows = ins[k][0] if fact.kind == "shapes" else 0
                ins[k] = fact.merge(f"arg{k}", ins[k], fact.whole(value, rows))
        return list(made)

    # Work -----------------------------------------------------------------------------------

    def runner(self) -> Any:
        """What runs it, imported late: it needs executors, which need operators."""
        return load_module("gnomon.executor.loops").RUNNERS[self.name](self)

    def run(self, ctx: Any, in_data: Any, req: Any, out_data: Any, aux: Any) -> None:
        self.runner().forward(ctx, in_data, req, out_data, aux)

    def run_backward(
        self, ctx: Any, out_grad: Any, in_data: Any, out_data: Any, req: Any, in_grad: Any, aux: Any
    ) -> None:
        self.runner().backward(ctx, out_grad, in_data, req, in_grad, aux)

    def backward_needs(
        self, in_shapes: Sequence[Shape], in_types: Sequence[DType], **context: Any
    ) -> Needs:
        return Needs(
            tuple(range(self.num_outputs)), tuple(range(len(self.order))), ()
        )  # as states are


@op("_foreach", inputs=())
class ForEach(Control):
    """A body for each part of data along its first axis, one after the other, with states.

    Inputs are data, first states, and what the body reads besides; outputs are those of all steps,
    stacked, and the last states.
    """

    roles = ("body",)
    num_out_data: int = param(low=0, doc="Outputs that are stacked; the others are states.")
    in_data_locs: Dims = param(doc="Which variables of the body are parts of data.")
    in_state_locs: Dims = param(doc="Which ones are states.")
    remain_locs: Dims = param(doc="Which ones are the further inputs.")

    def check(self) -> None:
        super().check()
        if self.num_outputs - self.num_out_data != len(self.in_state_locs):
            raise self.wrong("in_state_locs", f"{self.num_outputs - self.num_out_data} of them")
        if not self.in_data_locs:
            raise ParamError(complaint(self.name, "in_data_locs", "1 number or more", "none"))

    def fed(self) -> Iterator[tuple[Any, tuple[int, ...]]]:
        locs = (*self.in_data_locs, *self.in_state_locs, *self.remain_locs)
        places = {loc: k for k, loc in enumerate(locs)}
        body = self.subgraphs[0]
        yield body, tuple(places.get(k, -1) for k in range(body.num_inputs))

    def learn(self, fact: Fact, ins: Known, outs: Known) -> None:
        data = range(len(self.in_data_locs))
        states = range(len(data), len(data) + len(self.in_state_locs))
        for k, out in zip(states, range(self.num_out_data, self.num_outputs), strict=True):
            ins[k] = fact.merge(f"arg{k}", ins[k], outs[out])
        made = self.follow(fact, 0, ins, data)
        rows = fact.rows([ins[k] for k in data])
        for out, value in enumerate(made):
            whole = fact.whole(value, rows) if out < self.num_out_data else value
            outs[out] = fact.merge(self.outputs()[out], outs[out], whole)
        for k, out in zip(states, range(self.num_out_data, self.num_outputs), strict=True):
            ins[k] = fact.merge(f"arg{k}", ins[k], outs[out])


@op("_while_loop", inputs=())
class WhileLoop(Control):
    """A body again and again, as long as a condition on its variables holds.

    Outputs are those of all steps, stacked, with zeros behind them up to `max_iterations`, and the
    last variables.
    """

    roles = ("condition", "body")
    num_out_data: int = param(low=0, doc="Outputs that are stacked; the others are variables.")
    max_iterations: int = param(low=1, doc="How many steps there are at most.")
    cond_input_locs: Dims = param(doc="Which inputs the variables of the condition are.")
    func_input_locs: Dims = param(doc="Which inputs the variables of the body are.")
    func_var_locs: Dims = param(doc="Which variables of the body change from step to step.")

    def check(self) -> None:
        super().check()
        if self.num_outputs - self.num_out_data != len(self.func_var_locs):
            raise self.wrong("func_var_locs", f"{self.num_outputs - self.num_out_data} of them")

    def fed(self) -> Iterator[tuple[Any, tuple[int, ...]]]:
        yield self.subgraphs[0], self.cond_input_locs
        yield self.subgraphs[1], self.func_input_locs

    @property
    def variables(self) -> list[int]:
        """The inputs that change from step to step."""
        return [self.func_input_locs[k] for k in self.func_var_locs]

    def learn(self, fact: Fact, ins: Known, outs: Known) -> None:
        pairs = list(zip(self.variables, range(self.num_out_data, self.num_outputs), strict=True))
        for k, out in pairs:
            ins[k] = fact.merge(f"arg{k}", ins[k], outs[out])
        self.follow(fact, 0, ins)
        made = self.follow(fact, 1, ins)
        for out, value in enumerate(made):
            steps = fact.whole(value, self.max_iterations)
            whole = steps if out < self.num_out_data else value
            outs[out] = fact.merge(self.outputs()[out], outs[out], whole)
        for k, out in pairs:
            ins[k] = fact.merge(f"arg{k}", ins[k], outs[out])


@op("_cond", inputs=())
class Cond(Control):
    """One body where a condition holds, else another one."""

    roles = ("condition", "then", "else")
    cond_input_locs: Dims = param(doc="Which inputs the variables of the condition are.")
    then_input_locs: Dims = param(doc="Which inputs the variables of the first body are.")
    else_input_locs: Dims = param(doc="Which inputs the variables of the second body are.")

    def fed(self) -> Iterator[tuple[Any, tuple[int, ...]]]:
        yield self.subgraphs[0], self.cond_input_locs
        yield self.subgraphs[1], self.then_input_locs
        yield self.subgraphs[2], self.else_input_locs

    def check(self) -> None:
        super().check()
        counts = [body.num_outputs for body in self.subgraphs[1:]]
        if counts != [self.num_outputs] * 2:
            raise GnomonError(complaint(self.name, "outputs", f"{self.num_outputs} each", counts))

    def learn(self, fact: Fact, ins: Known, outs: Known) -> None:
        self.follow(fact, 0, ins)
        for which in (1, 2):
            for out, value in enumerate(self.follow(fact, which, ins)):
                outs[out] = fact.merge(self.outputs()[out], outs[out], value)
