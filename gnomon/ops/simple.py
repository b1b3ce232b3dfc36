"""SimpleOp: one chain of calls registers an operator of one or two inputs.

    (
        SimpleOp("scale")
        .set_function(kDevCPU, lambda data, env: data * env.scalar)
        .set_enable_scalar(True)
        .describe("`data` times `scalar`.")
    )

A function comes in two forms. The short one takes its inputs and `env` and gives an expression; the
system stores it, fuses it and can differentiate it. The full one takes TBlobs, `env`, what to write
and how (`ret, req, ctx`), and stores by `assign_dispatch`. Gradients say by annotations what they
are of: `OutputGrad`, `OutputValue`, `Input0`, `Input1`, each with its `.data`.
"""

from __future__ import annotations

import enum
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Self

from gnomon.base import GnomonError, ParamError, ShapeError, complaint, shown
from gnomon.dtype import DType
from gnomon.expr.node import Expr
from gnomon.ground.record import record
from gnomon.ops import registry
from gnomon.ops.derive import Needs
from gnomon.ops.infer import Shape, Shapes, Undetermined, known
from gnomon.ops.op import Op, describe
from gnomon.ops.param import Param, kind_of
from gnomon.ops.requests import check_requests

Function = Callable[..., Any]


class SimpleOpInplaceOption(enum.IntEnum):
    """Which memory a function may share: a hint, the system decides."""

    kNoInplace = 0
    kInplaceInOut = 1
    kInplaceOutIn = 2
    kInplaceLhsOut = 3
    kInplaceOutLhs = 4


kNoInplace = SimpleOpInplaceOption.kNoInplace
kInplaceInOut = SimpleOpInplaceOption.kInplaceInOut
kInplaceOutIn = SimpleOpInplaceOption.kInplaceOutIn
kInplaceLhsOut = SimpleOpInplaceOption.kInplaceLhsOut
kInplaceOutLhs = SimpleOpInplaceOption.kInplaceOutLhs


@record()
class EnvArguments:
    """What a function is given beside its inputs: a scalar or keyword arguments, and resources."""

    scalar: float = 0.0
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    resource: Sequence[Any] = ()


@record()
class GradFunctionArgument:
    """What a gradient function is given; `.data` is the expression (or the TBlob) itself."""

    data: Any


class OutputGrad(GradFunctionArgument):
    """The gradient of the output."""


class OutputValue(GradFunctionArgument):
    """The output that was computed."""


class Input0(GradFunctionArgument):
    """The first input."""


class Input1(GradFunctionArgument):
    """The second input."""


ROLES = (OutputGrad, OutputValue, Input0, Input1)


class SimpleOp:
    """A registration under way: every method says one thing more and gives it back."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(complaint("SimpleOp", "name", "a string", repr(name)))
        self.name = name
        self.functions: dict[int, Function] = {}
        self.gradients: dict[int, Function] = {}
        self.inplace: dict[str, SimpleOpInplaceOption] = {}
        self.shape_function: Function | None = None
        self.requests: tuple[Any, ...] = ()
        self.enabled: str | None = None
        self.operator: type[Op] | None = None

    def set_function(
        self, dev_mask: int, function: Function, inplace: SimpleOpInplaceOption = kNoInplace
    ) -> Self:
        """Say what is computed on devices of `dev_mask`; the first call registers the operator.

        Short form `f(data, env)` or `f(lhs, rhs, env)`, giving an expression; full form
        `f(data, env, ret, req, ctx)` or `f(lhs, rhs, env, ret, req, ctx)`, giving nothing.
        """
        _check_device(self.name, dev_mask)
        option = _option(self.name, inplace)
        inputs, full = _form(self.name, function)
        if self.operator is None:
            self.operator = _declare(self, function, inputs, full)
        elif len(self.operator.input_names) != inputs:
            expected = f"{len(self.operator.input_names)} inputs as before"
            raise GnomonError(complaint(self.name, "function", expected, inputs))
        self.functions[dev_mask] = function
        self.inplace["function"] = option
        return self

    def set_gradient(
        self, dev_mask: int, function: Function, inplace: SimpleOpInplaceOption = kNoInplace
    ) -> Self:
        """Say what the gradient is; without it, it is derived where the function is a short one.

        Short form `g(out_grad: OutputGrad, in0: Input0, env)`, giving an expression (two for two
        inputs); full form with `in_grad, req, ctx` (`lhs_grad, rhs_grad, req_lhs, req_rhs, ctx`).
        """
        _check_device(self.name, dev_mask)
        self.inplace["gradient"] = _option(self.name, inplace)
        roles_of(self.name, function)
        self.gradients[dev_mask] = function
        return self

    def set_shape_function(self, function: Function) -> Self:
        """Say the output's shape: `f(shape, env)` or `f(lhs, rhs, env)`; by default the inputs'."""
        _check_function(self.name, "shape function", function)
        self.shape_function = function
        return self

    def set_enable_scalar(self, enable: bool = True, default: float = 1.0) -> Self:
        """Give the operator a parameter `scalar`, which comes as `env.scalar`."""
        return self._enable(
            "scalar", enable, {"scalar": Param(default, name="scalar", kind=kind_of(float))}
        )

    def set_enable_kwargs(self, enable: bool = True) -> Self:
        """Let the operator take any keyword arguments, which come as `env.kwargs`."""
        return self._enable("kwargs", enable, {})

    def _enable(self, what: str, enable: bool, fields: dict[str, Param]) -> Self:
        if enable and self.enabled not in (None, what):
            raise GnomonError(f"{self.name}: scalar and kwargs cannot both be enabled")
        self.enabled = what if enable else None
        self.registered().fields = fields if enable else {}
        return self

    def set_resource_request(self, *requests: Any) -> Self:
        """Ask for resources, which come as `env.resource`."""
        self.requests = requests
        return self

    def describe(self, text: str) -> Self:
        """Say in a sentence what the operator gives."""
        self.registered().__doc__ = text
        return self

    def registered(self) -> type[Op]:
        """The operator; GnomonError before `set_function`."""
        if self.operator is None:
            raise GnomonError(f"{self.name}: set_function comes first, it registers the operator")
        return self.operator


def register_simple_op(name: str) -> SimpleOp:
    """Begin the registration of the operator `name`."""
    return SimpleOp(name)


def _check_function(where: str, argument: str, function: object) -> None:
    if not callable(function):
        raise TypeError(complaint(where, argument, "a function", shown(function)))


def _check_device(where: str, dev_mask: object) -> None:
    if not isinstance(dev_mask, int):
        expected = "a device mask, kDevCPU or kDevGPU"
        raise TypeError(complaint(where, "dev_mask", expected, repr(dev_mask)))


def _option(where: str, given: Any) -> SimpleOpInplaceOption:
    try:
        return SimpleOpInplaceOption(given)
    except ValueError:
        expected = f"one of {', '.join(o.name for o in SimpleOpInplaceOption)}"
        raise ParamError(complaint(where, "inplace", expected, shown(given))) from None


def _form(where: str, function: Function) -> tuple[int, bool]:
    """How many inputs `function` has, and whether it stores by itself."""
    _check_function(where, "function", function)
    count = len(inspect.signature(function).parameters)
    forms = {2: (1, False), 3: (2, False), 5: (1, True), 6: (2, True)}
    if count not in forms:
        expected = "(data, env), (lhs, rhs, env), or these with ret, req, ctx"
        raise GnomonError(complaint(where, "function", expected, f"{count} parameters"))
    return forms[count]


def roles_of(where: str, function: Function) -> list[type[GradFunctionArgument]]:
    """What a gradient function's first parameters stand for, by their annotations."""
    _check_function(where, "gradient", function)
    hints = typing.get_type_hints(function)
    before_env = list(inspect.signature(function).parameters)
    if "env" not in before_env:
        raise GnomonError(complaint(where, "gradient", "a parameter 'env'", before_env))
    before_env = before_env[: before_env.index("env")]
    for name in before_env:
        if hints.get(name) not in ROLES:
            expected = "annotated " + ", ".join(r.__name__ for r in ROLES)
            raise GnomonError(complaint(where, name, expected, hints.get(name, "nothing")))
    return [hints[name] for name in before_env]


class SimpleRecord(Op):
    """What both forms share: parameters, shapes, and what gradient functions are given."""

    simple: ClassVar[SimpleOp]

    def __init__(self, **given: Any) -> None:
        if self.simple.enabled == "kwargs":
            super().__init__()
            self.__dict__.update(_given=given, _key=(type(self), *sorted(given.items())))
        elif "kwargs" in given and "scalar" in given:
            raise ParamError(complaint(self.name, "kwargs", "a scalar or kwargs, not both", given))
        else:
            super().__init__(**given)

    def environment(self, resources: Sequence[Any] = ()) -> EnvArguments:
        """What a function is given beside its inputs."""
        if self.simple.enabled == "scalar":
            return EnvArguments(self.scalar, {}, resources)
        return EnvArguments(0.0, dict(self._given), resources)

    def shapes(self, s: Shapes) -> None:
        if self.simple.shape_function is None:
            s.same()
            return
        shapes = [s.need(name) for name in self.arguments()]
        if not all(map(known, shapes)):
            raise Undetermined(self.name)
        s["output"] = self._shape(*shapes)

    def _shape(self, *shapes: Shape) -> Shape:
        assert self.simple.shape_function is not None
        try:
            return tuple(self.simple.shape_function(*shapes, self.environment()))
        except (ValueError, TypeError, IndexError) as error:
            raise ShapeError(f"{self.name}: no shape for inputs {shapes}: {error}") from error

    def gradient_arguments(
        self, function: Function, out_grad: Any, out_value: Any, inputs: Sequence[Any]
    ) -> list[GradFunctionArgument]:
        """What `function` asks for by its annotations."""
        have = dict(zip(ROLES, (out_grad, out_value, *inputs), strict=False))
        return [role(have[role]) for role in roles_of(self.name, function)]

    def chosen(self, table: Mapping[int, Function], dev_mask: int) -> Function:
        """The function for devices of `dev_mask`; the only one there is, otherwise."""
        return table.get(dev_mask) or next(iter(table.values()))


class SimpleExpression(SimpleRecord):
    """A SimpleOp whose function gives an expression."""

    def forward(self, *inputs: Expr, dev_mask: int = 1) -> Expr:
        found: Expr = self.chosen(self.simple.functions, dev_mask)(*inputs, self.environment())
        return found

    def backward(
        self, out_grads: Any, inputs: Any, outputs: Any, **context: Any
    ) -> tuple[Expr | None, ...]:
        if not self.simple.gradients:
            return super().backward(out_grads, inputs, outputs, **context)
        function = self.chosen(self.simple.gradients, context.get("dev_mask", 1))
        given = self.gradient_arguments(function, out_grads[0], outputs[0], inputs)
        found = function(*given, self.environment())
        return found if isinstance(found, tuple) else (found,)


class SimpleOpaque(SimpleRecord):
    """A SimpleOp whose functions store by themselves."""

    def backward_needs(
        self, in_shapes: Sequence[Shape], in_types: Sequence[DType], **context: Any
    ) -> Needs:
        if not self.simple.gradients:
            return Needs((), (), ())
        asked = roles_of(self.name, next(iter(self.simple.gradients.values())))
        inputs = tuple(k for k, role in enumerate((Input0, Input1)) if role in asked)
        return Needs((0,), inputs, (0,) if OutputValue in asked else ())

    def resources(self, in_shapes: Sequence[Shape], backward: bool = False) -> list[Any]:
        return list(self.simple.requests)

    def run(self, ctx: Any, in_data: Any, req: Any, out_data: Any, aux: Any) -> None:
        check_requests(self.name, req, out_data)
        function = self.chosen(self.simple.functions, ctx.dev_mask)
        env = self.environment(ctx.requested)
        function(*in_data, env, out_data[0], req[0], ctx.run_ctx)

    def run_backward(
        self, ctx: Any, out_grad: Any, in_data: Any, out_data: Any, req: Any, in_grad: Any, aux: Any
    ) -> None:
        check_requests(self.name, req, in_grad)
        if not self.simple.gradients:
            raise GnomonError(f"{self.name}: no gradient is registered (set_gradient)")
        function = self.chosen(self.simple.gradients, ctx.dev_mask)
        given = self.gradient_arguments(function, out_grad[0], out_data[0], in_data)
        function(*given, self.environment(ctx.requested), *in_grad, *req, ctx.run_ctx)


def _declare(simple: SimpleOp, function: Any, inputs: int, full: bool) -> type[Op]:
    """The operator of a registration, in the module of its function, entered under its name."""
    base = SimpleOpaque if full else SimpleExpression
    module = getattr(function, "__module__", None) or ""  # what `exec` made has none
    parts = {"__doc__": f"{simple.name}.", "__module__": module, "simple": simple}
    cls: type[Op] = type(simple.name, (base,), parts)
    cls.name = simple.name
    cls.input_names = ("data",) if inputs == 1 else ("lhs", "rhs")
    describe(cls)
    registry.register(cls)
    return cls
