"""The classic interface: an operator as a property (its meaning) and an object that does the work.

`OperatorProperty` says names, shapes, dtypes, dependencies and resources; the `Operator` it creates
works on TBlobs the system allocated. `register_op_property` makes an operator of a property that a
user writes; `property_of` shows any registered operator through the same interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from inspect import signature
from typing import Any, ClassVar, TypeVar

from gnomon.base import DTypeError, GnomonError, ShapeError, complaint, shown
from gnomon.dtype import DType
from gnomon.ground.record import record
from gnomon.ops import registry
from gnomon.ops.derive import Needs
from gnomon.ops.infer import UNKNOWN, Inferred, Partly, Shape, check_count, from_border, to_border
from gnomon.ops.op import Op, describe
from gnomon.ops.param import Parameter
from gnomon.ops.requests import check_requests

Blobs = Sequence[Any]
Requests = Sequence[Any]
P = TypeVar("P", bound="type[OperatorProperty]")


@record(frozen=False)
class OpContext:
    """What an operator is told beside its data.

    `state` is kept from one run of a node to the next; `requested` are the resources asked for.
    """

    is_train: bool = False
    run_ctx: Any = None
    requested: Sequence[Any] = ()
    dev_mask: int = 1
    state: dict[Any, Any] = field(default_factory=dict)


class Operator:
    """What does the work, made by a property for one node on one device."""

    def forward(
        self, ctx: OpContext, in_data: Blobs, req: Requests, out_data: Blobs, aux_states: Blobs
    ) -> None:
        """Store the outputs as `req` says (see `assign_dispatch`)."""
        raise GnomonError(f"{type(self).__name__}: says nothing of forward")

    def backward(
        self,
        ctx: OpContext,
        out_grad: Blobs,
        in_data: Blobs,
        out_data: Blobs,
        req: Requests,
        in_grad: Blobs,
        aux_states: Blobs,
    ) -> None:
        """Store the gradients as `req` says; what was not declared as a dependency is None."""
        raise GnomonError(f"{type(self).__name__}: has no gradient")


class OperatorProperty:
    """What an operator is, apart from how it is done.

    A subclass with `parameters` (a `Parameter` structure) has its fields in `self.param`.
    """

    parameters: ClassVar[type[Parameter] | None] = None
    param: Any = None

    def init(self, kwargs: Mapping[str, Any]) -> None:
        """Take the parameters, as values or strings; ParamError for what is not allowed."""
        structure = self.parameters or Parameter
        self.param = structure(**kwargs)

    def get_params(self) -> dict[str, str]:
        """The parameters as strings."""
        return self.param.as_strings() if self.param is not None else {}

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of all outputs."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the states."""
        return []

    def num_outputs(self) -> int:
        """How many outputs there are."""
        return len(self.list_outputs())

    def num_visible_outputs(self) -> int:
        """How many of them a caller sees."""
        return self.num_outputs()

    def infer_shape(
        self, in_shape: list[Any], out_shape: Sequence[Any] = ()
    ) -> tuple[list[Any], list[Any], list[Any]] | bool:
        """Shapes of inputs, outputs and states; False when not enough is known.

        `out_shape` is what is known of the outputs; a rule that does not read it need not have it
        as a parameter. None is an unknown shape, 0 an unknown size. ShapeError names argument and
        shapes.
        """
        known = [tuple(s) for s in (*in_shape[:1], *out_shape) if s is not None]
        if not known:
            return False
        shape = next((s for s in known if 0 not in s), known[0])
        outs = [shape] * self.num_outputs()
        return [shape] * len(in_shape), outs, [shape] * len(self.list_auxiliary_states())

    def infer_type(
        self, in_type: list[Any], out_type: Sequence[Any] = ()
    ) -> tuple[list[Any], list[Any], list[Any]] | bool:
        """Dtypes of inputs, outputs and states, as `infer_shape`."""
        known = next((t for t in (*in_type, *out_type) if t is not None), None)
        if known is None:
            return False
        states = [known] * len(self.list_auxiliary_states())
        return [known] * len(in_type), [known] * self.num_outputs(), states

    def forward_resource(self, in_shape: list[Any]) -> list[Any]:
        """What forward needs beside its data: a list of ResourceRequest."""
        return []

    def backward_resource(self, in_shape: list[Any]) -> list[Any]:
        """What backward needs beside its data: a list of ResourceRequest."""
        return []

    def declare_backward_dependency(
        self, out_grad: list[int], in_data: list[int], out_data: list[int]
    ) -> list[int]:
        """Those of the given numbers that backward reads; all of them by default."""
        return [*out_grad, *in_data, *out_data]

    def forward_inplace_option(
        self, in_data: list[int], out_data: list[Any]
    ) -> list[tuple[int, Any]]:
        """Pairs that may share memory: a hint, the system decides."""
        return []

    def backward_inplace_option(
        self, out_grad: list[int], in_data: list[int], out_data: list[int], in_grad: list[Any]
    ) -> list[tuple[int, Any]]:
        """Pairs that may share memory: a hint, the system decides."""
        return []

    def create_operator(self, ctx: Any) -> Operator:
        """The object that does the work on device `ctx`."""
        raise GnomonError(f"{type(self).__name__}: says nothing of create_operator")


class PropertyOp(Op):
    """A user's property as an operator record."""

    made_from: ClassVar[type[OperatorProperty]]
    open_inputs = True

    def __init__(self, **given: Any) -> None:
        meaning, values = self.meant(given)
        self.__dict__.update(values)
        self.__dict__.update(_given=given, meaning=meaning)
        self.__dict__["_key"] = (type(self), type(meaning), *sorted(self.attrs().items()))

    @classmethod
    def usual_inputs(cls) -> tuple[str, ...]:
        try:
            meaning = cls.meant({})[0]
            return (*meaning.list_arguments(), *meaning.list_auxiliary_states())
        except Exception:  # a user's code, which may want parameters
            return ()

    @classmethod
    def meant(cls, given: Mapping[str, Any]) -> tuple[OperatorProperty, dict[str, Any]]:
        """The property with these parameters, and the values of all of them."""
        structure = cls.made_from.parameters
        values = structure(**given).values() if structure else dict(given)
        meaning = cls.made_from()
        meaning.init(given)
        return meaning, values

    def arguments(self) -> tuple[str, ...]:
        return tuple(self.meaning.list_arguments())

    def outputs(self) -> tuple[str, ...]:
        return tuple(self.meaning.list_outputs())

    def auxiliary(self) -> tuple[str, ...]:
        return tuple(self.meaning.list_auxiliary_states())

    @property
    def num_visible_outputs(self) -> int:
        return int(self.meaning.num_visible_outputs())

    def infer_shape(
        self, in_shapes: Partly, out_shapes: Partly | None = None, *, zero_unknown: bool = True
    ) -> Inferred:
        names = self.arguments()
        check_count(self.name, names, len(in_shapes))
        given = in_shapes, out_shapes or [None] * len(self.outputs())
        # The rule takes 0 as not known. Where all sizes are known, a 0 that it gives is a size.
        unknown = zero_unknown or any(s is not None and UNKNOWN in s for p in given for s in p)
        ins, outs = ([to_border(s, zero_unknown=True) for s in part] for part in given)
        found = self._asked(self.meaning.infer_shape, ins, outs)
        a, b, c = self._inferred(found, ins, outs, ShapeError)
        if unknown and not zero_unknown:
            a, b, c = ([from_border(s, zero_unknown=True) for s in part] for part in (a, b, c))
        return a, b, c

    def infer_type(
        self, in_types: Sequence[DType | None], out_types: Sequence[DType | None] | None = None
    ) -> tuple[list[DType | None], list[DType | None], list[DType | None]]:
        found = self._asked(self.meaning.infer_type, in_types, out_types)
        return self._inferred(found, in_types, out_types, GnomonError)

    def _asked(self, rule: Any, ins: Sequence[Any], outs: Sequence[Any] | None) -> Any:
        """What a rule of the property says; it is told of the outputs if it takes them."""
        if len(signature(rule).parameters) < 2:
            return rule(list(ins))
        return rule(list(ins), list(outs or [None] * len(self.outputs())))

    def _inferred(
        self, found: Any, ins: Sequence[Any], outs: Sequence[Any] | None, error: type[GnomonError]
    ) -> tuple[list[Any], list[Any], list[Any]]:
        names = (self.arguments(), self.outputs(), self.auxiliary())
        if not found:
            return list(ins), list(outs or [None] * len(names[1])), [None] * len(names[2])
        parts = [list(part) for part in (*found, *([],) * (3 - len(found)))]
        if [len(p) for p in parts] != [len(n) for n in names]:
            expected = f"{[len(n) for n in names]} of inputs, outputs and states"
            raise error(complaint(self.name, "infer", expected, [len(p) for p in parts]))
        return parts[0], parts[1], parts[2]

    def backward_needs(
        self, in_shapes: Sequence[Shape], in_types: Sequence[DType], **context: Any
    ) -> Needs:
        groups = _numbered(self.num_visible_outputs, len(self.arguments()), len(self.outputs()))
        asked = set(self.meaning.declare_backward_dependency(*map(list, groups)))
        return Needs(*(tuple(k for k, n in enumerate(g) if n in asked) for g in groups))

    def inplace(
        self, in_shapes: Sequence[Shape], in_types: Sequence[DType]
    ) -> tuple[tuple[int, int], ...]:
        ins, outs = list(range(len(self.arguments()))), list(range(len(self.outputs())))
        return tuple(self.meaning.forward_inplace_option(ins, outs))

    def resources(self, in_shapes: Sequence[Shape], backward: bool = False) -> list[Any]:
        meaning = self.meaning
        ask = meaning.backward_resource if backward else meaning.forward_resource
        return list(ask(list(in_shapes)))

    def run(self, ctx: Any, in_data: Blobs, req: Requests, out_data: Blobs, aux: Blobs) -> None:
        check_requests(self.name, req, out_data)
        self._operator(ctx).forward(ctx, in_data, req, out_data, aux)

    def run_backward(
        self,
        ctx: Any,
        out_grad: Blobs,
        in_data: Blobs,
        out_data: Blobs,
        req: Requests,
        in_grad: Blobs,
        aux: Blobs,
    ) -> None:
        check_requests(self.name, req, in_grad)
        self._operator(ctx).backward(ctx, out_grad, in_data, out_data, req, in_grad, aux)

    def _operator(self, ctx: OpContext) -> Operator:
        """The node's own object, made once."""
        if "operator" not in ctx.state:
            made = self.meaning.create_operator(ctx.run_ctx)
            if not isinstance(made, Operator):
                expected = "an Operator"
                where = f"{self.name}.create_operator"
                raise DTypeError(complaint(where, "result", expected, shown(made)))
            ctx.state["operator"] = made
        found: Operator = ctx.state["operator"]
        return found


def _numbered(*counts: int) -> list[range]:
    """Numbers for so many things of each group, all different."""
    groups, start = [], 0
    for count in counts:
        groups.append(range(start, start + count))
        start += count
    return groups


def _check_property(name: str, found: Any) -> None:
    if not (isinstance(found, type) and issubclass(found, OperatorProperty)):
        expected = "a subclass of OperatorProperty"
        raise TypeError(complaint("register_op_property", name, expected, shown(found)))


def register_op_property(name: str) -> Callable[[P], P]:
    """Register the property below as the operator `name`; its docstring becomes the operator's.

    Raises:
        TypeError: `name` is no text, or what stands below is no property.
        ParamError: the name is taken.
    """
    if not isinstance(name, str):
        raise TypeError(complaint("register_op_property", "name", "a string", repr(name)))

    def declare(property_type: P) -> P:
        _check_property(name, property_type)
        parts = {
            "__doc__": property_type.__doc__,
            "__module__": property_type.__module__,
            "made_from": property_type,
            "input_names": (),
        }
        cls: type[Op] = type(name, (PropertyOp,), parts)
        cls.name = name
        describe(cls)
        structure = property_type.parameters
        cls.fields = structure.fields if structure else {}
        cls.is_expression = False
        registry.register(cls)
        return property_type

    return declare
