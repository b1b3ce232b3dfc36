"""The record of an operator: one declaration that everything else is derived from.

    @op("FullyConnected", inputs=("data", "weight", "bias"))
    class FullyConnected(Op):
        \"\"\"Rows of `data` times the transpose of `weight`, plus `bias`.\"\"\"

        num_hidden: int = param(low=1)
        no_bias: bool = param(False)

        def forward(self, data, weight, bias=None): ...

`docs/operators.md` goes through every part of it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self, TypeVar

from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError, complaint, shown
from gnomon.dtype import DType
from gnomon.expr.node import Expr
from gnomon.ops import derive, given, infer, registry
from gnomon.ops.asking import parameters, with_context
from gnomon.ops.case import Cases
from gnomon.ops.infer import Free, Inferred, Partly, Shape, Shapes, Types
from gnomon.ops.param import Param, annotated, declared, kinds, parse_fields, show

C = TypeVar("C", bound="type[Op]")
Maybe = Sequence[Any]


class Draws(Protocol):
    """What an operator that asks for `random` is given: each call draws anew."""

    def uniform(self, shape: Shape, dtype: DType) -> Expr:
        """Numbers from 0 (included) to 1 (excluded)."""

    def normal(self, shape: Shape, dtype: DType) -> Expr:
        """Numbers of the normal distribution with mean 0 and deviation 1."""


# what a class says of its `forward`, and what it says where it says nothing
_OF_FORWARD = {
    "elementwise": False, "stretches": False, "reshapes": False,
    "moves": None, "reduces": None, "free": None,
}  # fmt: skip


class Op:
    """An operator with its parameters; instances are frozen, equal and hashed by value.

    Subclasses are declared with `@op` and say their fields, `forward`, and what is not the default.
    """

    name: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    input_names: ClassVar[tuple[str, ...]] = ("data",)
    output_names: ClassVar[tuple[str, ...]] = ("output",)
    aux_names: ClassVar[tuple[str, ...]] = ()
    numbers_outputs: ClassVar[bool] = False  # as symbols list them: `listed_outputs`
    variadic: ClassVar[str | None] = None
    stem: ClassVar[str] = "arg"  # what names of inputs begin with whose number varies
    interleaved: ClassVar[bool] = False  # whether a call has states among the arguments: `called`
    open_inputs: ClassVar[bool] = False  # an instance alone says how many, and their names
    fields: ClassVar[Mapping[str, Param]] = {}
    leading: ClassVar[tuple[str, ...]] = ()  # fields that come first, wherever they are declared
    is_expression: ClassVar[bool] = False
    forward_elsewhere: ClassVar[bool] = False  # `forward` is for GPUs: the processor `run`s
    elementwise: ClassVar[bool] = False  # on operands of one shape, the same function of elements
    stretches: ClassVar[bool] = False  # elementwise, and axes of 1 are stretched
    reshapes: ClassVar[bool] = False  # the elements of its operand in their order, in another shape
    moves: ClassVar[Callable[..., Any] | None] = None  # by shape: where elements come from
    reduces: ClassVar[Callable[..., Any] | None] = None  # by shape: axes, and what is left
    free: ClassVar[Callable[..., Free | None] | None] = None  # by shapes: what they say
    takes_random: ClassVar[bool] = False  # whether `forward` asks for a source of numbers
    asked: ClassVar[tuple[str, ...]] = ()  # what `gradient` reads, by name
    cases: ClassVar[Cases] = ()  # what the tests try it on
    reference: ClassVar[Callable[..., Any] | None] = None  # its outputs by NumPy
    gradient: ClassVar[Callable[..., Any] | None] = None
    guard: ClassVar[Callable[..., Any] | None] = None  # by shapes: an operator that refuses values
    brief: ClassVar[int] = 0  # up to so many elements, data is worked on here, not by a worker
    sparse_grad: Any = False  # whether its gradient is row-sparse; a field of Embedding

    @property
    def has_expression(self) -> bool:
        """Whether devices with memory of their own compute it as an expression."""
        return self.is_expression or self.forward_elsewhere

    @property
    def derives(self) -> bool:
        """Whether its gradient is the derivative of its `forward`: the class says no other."""
        return self.gradient is None and type(self).backward is Op.backward

    @property
    def is_random(self) -> bool:
        """Whether it draws numbers, in one of its modes."""
        return self.takes_random

    def __init_subclass__(cls) -> None:
        own = vars(cls)
        if "forward" in own:  # what was said of another one is not known of this
            for name, nothing in _OF_FORWARD.items():
                if name not in own:
                    setattr(cls, name, nothing)
        for method in ("forward", "backward", "gradient", "compute"):
            if inspect.isfunction(vars(cls).get(method)):
                setattr(cls, method, with_context(vars(cls)[method]))

    def __init__(self, **given: Any) -> None:
        values = parse_fields(self.name, self.fields, given)
        self.__dict__.update(values)
        self.__dict__["_given"] = given
        self.__dict__["_key"] = (type(self), *values.items())
        self.check()

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """The operator with parameters `given` as values or strings; equal ones are shared.

        ParamError for an unknown name, a missing field, a value out of range.
        """
        try:
            kind: Any = cls
            found: Self = _parsed(kind, tuple(given.items()), kinds(given.values()))
            return found
        except TypeError:  # a list among the values has no hash
            return cls(**given)

    def with_parameters(self, given: Mapping[str, Any]) -> Op:
        """The same operator with other parameters."""
        return type(self).parse(given)

    def check(self) -> None:
        """Hook: refuse combinations of fields that are each fine alone (ParamError)."""

    def wrong(self, field: str, expected: object) -> ParamError:
        """The error that a field is not what was expected."""
        return ParamError(complaint(self.name, field, expected, getattr(self, field)))

    def attrs(self) -> dict[str, str]:
        """The parameters that were given, as the strings MXNet's files hold."""
        return {k: show(v) for k, v in self._given.items()}

    def __setattr__(self, name: str, value: Any) -> None:
        raise GnomonError(f"{self.name}: an operator is frozen, '{name}' cannot be set")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and self._key == other._key and self._kinds == other._kinds

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _kinds(self) -> tuple[Any, ...]:
        """What tells fields apart that are equal."""
        return kinds([getattr(self, name, None) for name in self.fields])

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v}' for k, v in self.attrs().items())})"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.name}: no parameter or method '{name}'")

    # What goes in and comes out -------------------------------------------------------------

    def arguments(self) -> tuple[str, ...]:
        """Names of the inputs that gradients flow to; `arg0, arg1...` when their number varies."""
        if self.variadic:
            return tuple(f"{self.stem}{i}" for i in range(getattr(self, self.variadic)))
        aux = self.aux_names
        return tuple([n for n in self.input_names if n not in aux]) if aux else self.input_names

    def auxiliary(self) -> tuple[str, ...]:
        """Names of the states: inputs the operator changes and no gradient flows to."""
        return self.aux_names

    def inputs(self) -> tuple[str, ...]:
        """Names in the order of a call: the arguments, then the states."""
        return self.arguments() + self.auxiliary()

    def called(self) -> tuple[str, ...]:
        """Names of the inputs in the order of a call; `inputs` unless it is `interleaved`."""
        return self.inputs()

    def arranged(self, given: Maybe) -> list[Any]:
        """Inputs in the order of a call as arguments, then states."""
        if not self.interleaved:
            return list(given)
        place = {name: k for k, name in enumerate(self.called())}
        infer.check_count(self.name, place, len(given))
        return [given[place[name]] for name in self.inputs()]

    def filed(self, arranged: Sequence[Any]) -> list[Any]:
        """The inverse of `arranged`: the order of a call, which files have, too."""
        if not self.interleaved:
            return list(arranged)
        place = {name: k for k, name in enumerate(self.inputs())}
        return [arranged[place[name]] for name in self.called()]

    def outputs(self) -> tuple[str, ...]:
        """Names of all outputs, those only the gradient uses included."""
        return self.output_names

    def listed_outputs(self) -> tuple[str, ...]:
        """Names of outputs in symbols: numbers, where MXNet has no names for them."""
        return numbered(len(self.outputs())) if self.numbers_outputs else self.outputs()

    @property
    def num_visible_outputs(self) -> int:
        """How many of the outputs a caller sees."""
        return len(self.outputs())

    @property
    def num_heads(self) -> int:
        """How many gradients of outputs a caller may give; those of hidden ones do not count."""
        return len(self.outputs())

    # What it means --------------------------------------------------------------------------

    def shapes(self, s: Shapes) -> None:
        """Hook: the shape rule; by default everything has one shape."""
        s.same()

    def types(self, t: Types) -> None:
        """Hook: the dtype rule; by default everything has one dtype."""
        t.same()

    def forward(self, *inputs: Any, **context: Any) -> Expr | tuple[Expr, ...]:
        """The outputs as expressions of the inputs, arguments first, then states.

        Methods ask for context by keyword-only parameters: `train` (bool), `random` (see
        `Draws`), `out_shapes` (what inference found for the outputs, where parameters may leave
        it open), `used` (for each output whether anyone reads it, where that is known: what nothing
        reads may have any values); others are not passed on.
        """
        raise GnomonError(f"{self.name}: works on data (run), it has no expression")

    def updates(
        self, inputs: Maybe, aux: Maybe, outputs: Maybe, train: bool = True
    ) -> dict[int, Expr]:
        """What a forward pass makes of the states, by their index; by default they stay."""
        return {}

    def updates_backward(
        self, inputs: Maybe, aux: Maybe, outputs: Maybe, train: bool = True
    ) -> dict[int, Expr]:
        """What a backward pass that reaches the operator makes of the states, by their index.

        What it says, it says for all of them, or for none.
        """
        return {}

    def backward(self, *parts: Any, **context: Any) -> tuple[Expr | None, ...]:
        """The gradient of each argument (None: there is none).

        That is what the class says by `gradient`, which asks for what it reads by name (see
        `given.py`); where it says nothing, the derivative of `forward`. Called as
        `backward(out_grads, inputs, outputs, **context)`: `out_grads` has one entry a visible
        output, `inputs` the arguments and then the states, `outputs` every output.
        """
        if self.gradient is not None:
            return given.gradients(self, parts, context)
        out_grads, inputs, outputs = parts
        return derive.gradient(self, out_grads, inputs, outputs, context)

    def without_gradient(self) -> None:
        """What a class says whose gradients are 0: `gradient = Op.without_gradient`."""

    @classmethod
    def usual_inputs(cls) -> tuple[str, ...]:
        """Names of the inputs without parameters, for documentation."""
        return cls.input_names

    def numbers(self) -> dict[str, float]:
        """Hook: numbers that stand in its expressions as they are, on which nothing else depends.

        Others in their place, as `with_numbers` takes them, need no other program. One that only
        others are made of may be among them.
        """
        return {}

    def with_numbers(self, numbers: Mapping[str, float]) -> Op:
        """The same operator with these numbers, all that it has, whether they make sense or not."""
        return type(self)(**{**dict(self._key[1:]), **numbers})

    def of_reals(self) -> Op:
        """Hook: the operator that does with floats what this one does with integers."""
        return self

    # What follows from it -------------------------------------------------------------------

    def apply(self, inputs: Maybe, **context: Any) -> tuple[Expr, ...]:
        """`forward` as a tuple, one expression an output.

        DTypeError where something else than expressions comes back, ShapeError where their number
        is not that of the outputs.
        """
        try:
            found: Any = self.forward(*inputs, **context)
        except (DTypeError, ShapeError) as error:
            if type(error) not in (DTypeError, ShapeError) or str(error).startswith(self.name):
                raise
            raise type(error)(derive.told(self, error, inputs, context)) from error
        except Exception as error:
            self._sign("forward", error)
            raise
        values = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        for value in values:
            if not isinstance(value, Expr):
                expected = "an expression of the inputs, or a tuple of them"
                got = f"a {type(value).__name__}: {shown(value)}"
                raise DTypeError(complaint(f"{self.name}.forward", "result", expected, got))
        names = self.outputs()
        if len(values) != len(names):
            expected = f"{len(names)} expressions: {', '.join(names)}"
            raise ShapeError(complaint(f"{self.name}.forward", "result", expected, len(values)))
        told = context.get("out_shapes", ()), context.get("out_types", ())
        derive.check_values(f"{self.name}.forward", names, values, *told)
        return values

    def infer_shape(
        self, in_shapes: Partly, out_shapes: Partly | None = None, *, zero_unknown: bool = True
    ) -> Inferred:
        """Shapes of arguments, outputs and states from what is known of arguments and outputs.

        None is an unknown shape and 0 an unknown dimension; with `zero_unknown=False` 0 is a size.
        ShapeError names the argument and both shapes when they contradict.
        """
        facts = self._facts(Shapes, in_shapes, out_shapes, zero_unknown)
        try:
            infer.settle(facts, self.shapes)
        except Exception as error:
            self._sign("shapes", error)
            raise
        return self._parted([infer.to_border(s, zero_unknown) for s in facts.state()])

    def infer_type(
        self,
        in_types: Sequence[DType | None],
        out_types: Sequence[DType | None] | None = None,
    ) -> tuple[list[DType | None], list[DType | None], list[DType | None]]:
        """Dtypes of arguments, outputs and states from what is known of arguments and outputs."""
        facts = self._facts(Types, in_types, out_types, None)
        try:
            infer.settle(facts, self.types)
        except Exception as error:
            self._sign("types", error)
            raise
        return self._parted(list(facts.state()))

    def _sign(self, rule: str, error: Exception) -> None:
        """Have an exception out of a rule, which may be a user's, tell whose rule it is."""
        if self.name not in str(error):
            error.add_note(f"in {self.name}.{rule}")

    def _facts(self, kind: Any, ins: Maybe, outs: Maybe | None, zero_unknown: bool | None) -> Any:
        arguments, outputs, states = self.arguments(), self.outputs(), self.auxiliary()
        infer.check_count(self.name, arguments, len(ins))
        known = list(ins) + list(outs or [])
        known += [None] * (len(arguments) + len(outputs) + len(states) - len(known))
        if zero_unknown is not None:
            known = [infer.from_border(s, zero_unknown) for s in known]
        return kind(self.name, arguments + outputs + states, known)

    def _parted(self, state: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        a, b = len(self.arguments()), len(self.arguments()) + len(self.outputs())
        return state[:a], state[a:b], state[b:]

    def backward_needs(
        self, in_shapes: Sequence[Shape], in_types: Sequence[DType], **context: Any
    ) -> derive.Needs:
        """Which of out_grads, inputs and outputs the gradient reads, by index."""
        if not self.is_expression:
            return derive.everything(self)
        return derive.needs(self, tuple(in_shapes), tuple(in_types))

    def inplace(
        self, in_shapes: Sequence[Shape], in_types: Sequence[DType]
    ) -> tuple[tuple[int, int], ...]:
        """Pairs (input, output) where the output may overwrite the input."""
        if not self.is_expression:
            return ()
        return derive.inplace(self, tuple(in_shapes), tuple(in_types))

    def resources(self, in_shapes: Sequence[Shape], backward: bool = False) -> list[Any]:
        """What it needs beside its data: a list of ResourceRequest."""
        return []

    # Operators that work on data instead ----------------------------------------------------

    def run(self, ctx: Any, in_data: Maybe, req: Maybe, out_data: Maybe, aux: Maybe) -> None:
        """Compute `out_data` on TBlobs; only operators without an expression have it."""
        raise GnomonError(f"{self.name}: is an expression (forward), it does not run on data")

    def run_backward(
        self,
        ctx: Any,
        out_grad: Maybe,
        in_data: Maybe,
        out_data: Maybe,
        req: Maybe,
        in_grad: Maybe,
        aux: Maybe,
    ) -> None:
        """Compute `in_grad` on TBlobs; only operators without an expression have it."""
        raise GnomonError(f"{self.name}: has no gradient that runs on data")


def made_of(op: Op, numbers: Mapping[str, float]) -> Op:
    """`op`, just made, with numbers in the place of those that it makes of fields."""
    vars(op).update(numbers)
    vars(op)["_key"] = (*op._key, *numbers.items())
    return op


def numbered(count: int) -> tuple[str, ...]:
    """Names of outputs that have no others, as MXNet numbers them.

    >>> numbered(1), numbered(2)
    (('output',), ('output0', 'output1'))
    """
    return ("output",) if count == 1 else tuple(f"output{k}" for k in range(count))


@functools.lru_cache(maxsize=4096)
def _parsed(cls: Any, items: tuple[tuple[str, Any], ...], kinds: tuple[type, ...]) -> Any:
    """`kinds` keeps values apart that are equal as keys and differ as attributes."""
    return cls(**dict(items))


def op(
    name: str,
    *,
    inputs: Sequence[str] = ("data",),
    outputs: Sequence[str] = ("output",),
    aux: Sequence[str] = (),
    aliases: Sequence[str] = (),
    variadic: str | None = None,
) -> Callable[[C], C]:
    """Declare a class an operator called `name` and enter it into the registry.

    `inputs` are all names in call order, `aux` those of them that are states, `variadic` the
    parameter that counts the inputs.
    """

    for what, names in (("inputs", inputs), ("outputs", outputs), ("aux", aux)):
        if isinstance(names, str):
            raise TypeError(complaint(f"op {name}", what, "a sequence of names", shown(names)))

    def declare(cls: C) -> C:
        if Op not in getattr(cls, "__mro__", ()):
            raise TypeError(complaint(f"op {name}", "cls", "a subclass of Op", shown(cls)))
        cls.name, cls.aliases, cls.variadic = name, tuple(aliases), variadic
        cls.input_names, cls.output_names = tuple(inputs), tuple(outputs)
        cls.aux_names = tuple(aux)
        describe(cls)
        _check_forward(cls)
        if not cls.is_expression and cls.run is Op.run:
            expected = "a class with forward (an expression), or with run (on data)"
            raise TypeError(complaint(f"op {name}", "cls", expected, shown(cls)))
        registry.register(cls)
        return cls

    return declare


def describe(cls: type[Op]) -> None:
    """Read off `cls` what the record holds beside its names: fields, and what `forward` is."""
    _check_fields(cls)
    cls.fields = declared(cls)
    cls.is_expression = cls.forward is not Op.forward and not cls.forward_elsewhere
    cls.takes_random = "random" in parameters(cls.forward)
    if cls.gradient is not None:
        cls.asked = given.asked(cls.gradient)


def _check_fields(cls: type[Op]) -> None:
    """Refuse a field that has a plain value: calls could not set it."""
    own = vars(cls)
    for name, kind in annotated(cls).items():
        if name not in own or name in vars(Op) or "ClassVar" in str(kind):
            continue
        value = own[name]
        if not isinstance(value, Param):
            expected = f"param({value!r}), or no annotation where it is fixed"
            raise ParamError(complaint(cls.__name__, name, expected, shown(value)))


def _check_forward(cls: type[Op]) -> None:
    """Refuse a `forward` that asks for more than the inputs there are: no call could give it."""
    forward = inspect.unwrap(cls.forward)
    wanted = forward.__code__.co_argcount - len(forward.__defaults__ or ())
    more = forward.__code__.co_varnames[1 + len(cls.input_names) : wanted]
    if more and cls.variadic is None and cls.arguments is Op.arguments:
        expected = f"parameters for the inputs {', '.join(cls.input_names)} alone"
        raise TypeError(complaint(f"op {cls.name}", "forward", expected, ", ".join(more)))
