"""The nodes of an expression: every kind on this page.

    Buffer      data in memory: the leaf, and what a statement stores into
    Scalar      a number, given to the kernel as an argument
    Map         a scalar function over operands of one shape
    Cast        another dtype
    Chainer     anything given by an index rule: see `composite.py`, and `ext/`, one file each
    Call        a library's work (matrix product, convolution): see `composite.py`, and `call/`

A node is immutable. It knows its `shape` and `dtype` (checked when it is built, so that an error
points at the line that made it), its operands (`children`), what its element at an index is (`at`),
and how a gradient flows through it (`adjoint`). Readers walk nodes iteratively and remember what
they saw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, ClassVar, TypeAlias

import numpy as np

from gnomon import dtype as dt
from gnomon.base import DTypeError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.deferred import TRACED, Deferred, values_asked
from gnomon.expr.functions.machine import COMPARED, beyond
from gnomon.expr.functions.scalar import SCALAR, ScalarFn
from gnomon.expr.index import Index
from gnomon.expr.layout import array_at, elsewhere, stride_classes
from gnomon.expr.pattern import Pattern, steady
from gnomon.expr.term import Number, Term, compute_dtype
from gnomon.expr.ufunc import scalar_function
from gnomon.expr.unsupported import without
from gnomon.expr.walk import brief, fits_any, tree
from gnomon.ground.record import Frozen, put
from gnomon.shape import is_row_major, row_major

Shape: TypeAlias = tuple[int, ...]
Operand: TypeAlias = "Expr | Number"
RVALUE, MAPPER, CHAINER, COMPLEX = 0, 1, 3, 7
# how later stages print an expression: entered by `gnomon.runtime.statements.inspect`, which knows
# them
STAGES: dict[str, Callable[[Any], str]] = {}
# what `.T` means: entered by `gnomon.expr.ext.transpose`, which builds on this page
TURN: dict[str, Callable[[Any], Any]] = {}


def _operator(name: str) -> Callable[[Expr, Operand], Expr]:
    """The method of an operator of Python: a function of elements over both."""

    def method(self: Expr, other: Operand) -> Expr:
        return map_over(SCALAR[name], (self, other))

    return method


def _swapped(name: str) -> Callable[[Expr, Operand], Expr]:
    """The same with the node on the right."""

    def method(self: Expr, other: Operand) -> Expr:
        return map_over(SCALAR[name], (other, self))

    return method


class Expr(Frozen):
    """An expression: nothing is computed until it is stored.

    >>> x = Buffer((2, 3), dt.float32)
    >>> e = 2.0 * x + 1.0
    >>> e.shape, e.dtype.name
    ((2, 3), 'float32')
    """

    __slots__ = ("__weakref__", "dtype", "exp_type", "pattern", "shape")
    __hash__ = object.__hash__  # two nodes never have one: sets and dictionaries go by identity
    kind: ClassVar[int] = CHAINER
    shape: Shape
    dtype: DType
    exp_type: int  # the bitwise or of the kinds of all nodes below this one and its own
    pattern: Pattern | None  # see `expr/pattern.py`; None until it was asked for

    def __init__(self) -> None:
        expected = "operators, Tensor or an extension to make one"
        raise TypeError(complaint(type(self).__name__, "self", expected, "a bare expression"))

    @property
    def children(self) -> tuple[Expr, ...]:
        """The operands."""
        return ()

    def outline(self) -> tuple[Any, ...]:
        """What the node's pattern depends on, besides the patterns of its operands."""
        return (self,)  # of an unknown kind: equal to none but itself

    def at(self, i: Index) -> Term:
        """The element at index `i`, as a Term; `i.elem(operand, index)` asks for an operand's."""
        raise TypeError(
            f"{type(self).__name__} has no index rule: a library computes it as a whole"
        )

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        """Pairs (operand, what it receives) for the gradient `g` of this node; may be none."""
        return ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise TypeError(f"{self!r} is an expression, no array: store it into a tensor, or see fn")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return scalar_function(ufunc, method, kwargs)(*inputs)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> Expr:
        """The axes in reverse order; `e.T.T is e`. Of a vector, the column that `dot` knows."""
        turned: Expr = TURN["T"](self)
        return turned

    @property
    def label(self) -> str:
        """What kind of node it is, or which function."""
        return type(self).__name__

    def describe(self) -> str:
        """The node without its operands, in words."""
        return f"{self.label} {'x'.join(map(str, self.shape)) or 'scalar'} {self.dtype.name}"

    def tree(self) -> str:
        """The expression as an indented tree, shared parts once."""
        return tree(self)

    def plan(self) -> str:
        """The phases and loops that a fresh dense destination would get, as text."""
        return STAGES["plan"](self)

    def loop(self) -> str:
        """The loop nests of `plan` with what they compute, as readable pseudo-C."""
        return STAGES["loop"](self)

    def llvm(self) -> str:
        """The LLVM IR of the kernel, optimised."""
        return STAGES["llvm"](self)

    def asm(self) -> str:
        """The machine code of the kernel, as assembly."""
        return STAGES["asm"](self)

    def _map(self, fn: ScalarFn, args: Sequence[Operand]) -> Map:
        return map_over(fn, args)

    # each runs once for each pair of patterns: see `runtime/statements/call_cache_code.py`

    __add__, __radd__ = _operator("add"), _swapped("add")
    __sub__, __rsub__ = _operator("sub"), _swapped("sub")
    __mul__, __rmul__ = _operator("mul"), _swapped("mul")
    __truediv__, __rtruediv__ = _operator("div"), _swapped("div")
    __pow__, __rpow__ = _operator("power"), _swapped("power")
    __and__, __rand__ = _operator("bitwise_and"), _swapped("bitwise_and")
    __or__, __ror__ = _operator("bitwise_or"), _swapped("bitwise_or")
    __xor__, __rxor__ = _operator("bitwise_xor"), _swapped("bitwise_xor")
    __lshift__, __rlshift__ = _operator("left_shift"), _swapped("left_shift")
    __rshift__, __rrshift__ = _operator("right_shift"), _swapped("right_shift")
    __lt__, __le__ = _operator("lt"), _operator("le")
    __gt__, __ge__ = _operator("gt"), _operator("ge")
    __eq__: Any = _operator("eq")
    __ne__: Any = _operator("ne")

    def __neg__(self) -> Map:
        return map_over(SCALAR["neg"], (self,))

    def __invert__(self) -> Map:
        return map_over(SCALAR["invert"], (self,))

    def __abs__(self) -> Map:
        return map_over(SCALAR["abs"], (self,))

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self!r} has no truth value before it is stored somewhere; whether two names are "
            "one expression, `is` tells"
        )

    def __repr__(self) -> str:
        return f"<{Expr.describe(self)}>"


without(Expr)


class Buffer(Expr):
    """Data in memory: the `address` of the first element, and the `strides` in elements, not bytes.

    `owner` is kept alive as long as the buffer. An address of 0 means 'not decided yet': a memory
    plan sets it.
    """

    __slots__ = ("_layout", "address", "device", "owner", "strides")
    _layout: Any
    kind = RVALUE
    children: tuple[Expr, ...] = ()
    strides: Shape
    address: int
    owner: Any
    device: str
    settled, freed = True, False  # it has kept its shape; its memory was given back

    def __init_subclass__(cls) -> None:
        for name in ("at", "adjoint", "children", "outline"):
            if name in vars(cls):  # kernels read memory, whatever it says
                expected = "no rule of its own: data is what memory holds; derive from Chainer"
                raise TypeError(complaint(cls.__name__, name, expected, f"a {name}()"))

    def __init__(
        self,
        shape: Sequence[int],
        dtype: DType = dt.float32,
        strides: Sequence[int] | None = None,
        address: int = 0,
        owner: Any = None,
        device: str = "cpu",
    ) -> None:
        shape = tuple(shape)
        put(self, "strides", row_major(shape) if strides is None else tuple(strides))
        put(self, "device", device)
        put(self, "_layout", None)
        set_address(self, address, owner)
        typed(self, shape, dtype, RVALUE)

    def outline(self) -> tuple[Any, ...]:
        return (Buffer, self.shape, self.strides, self.dtype, self.device)

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        return is_row_major(self.shape, self.strides)

    @property
    def layout(self) -> tuple[int, ...]:
        """What code may assume of the strides; see `stride_classes`."""
        found: Shape | None = self._layout
        if found is None:
            found = stride_classes(self.shape, self.strides)
            put(self, "_layout", found)
        return found

    def numpy(self) -> np.ndarray[Any, Any]:
        """The data as a NumPy view; of a GPU's memory a copy that cannot be written to."""
        if self.device == TRACED:
            raise values_asked(self.owner, self)
        return steady(self._seen)

    def _seen(self) -> np.ndarray[Any, Any]:
        if 0 in self.shape and not self.freed:
            return np.empty(self.shape, self.dtype.numpy)
        if not self.address or self.device != "cpu":
            return elsewhere(self)
        owner = self if self.owner is None else self.owner  # which outlives a change of this one
        return array_at(self.address, self.shape, self.strides, self.dtype, owner)

    def at(self, i: Index) -> Term:
        return i.load(self)


class Scalar(Expr):
    """A number beside expressions of `dtype`; it fits any shape and never recompiles a kernel.

    What an integer type does not hold becomes the nearest that it does (`DType.nearest`).
    """

    __slots__ = ("modular", "value")
    kind = MAPPER
    children: tuple[Expr, ...] = ()
    value: Any  # a Number; while a function is traced it may be Deferred
    modular: bool

    def __init__(self, value: Any, dtype: DType, modular: bool = False) -> None:
        if type(value) is not float or type(dtype) is not DType:
            value, dtype = checked_number("scalar", value), dt.of(dtype)
        if dtype.kind != "f" and not isinstance(value, Deferred):
            value = (dt.int64 if dtype.kind == "b" else dtype).nearest(value, modular)
        put(self, "value", value)
        put(self, "modular", modular)
        typed(self, (), dtype, MAPPER)

    def outline(self) -> tuple[Any, ...]:
        return (None, self.dtype)

    @property
    def label(self) -> str:
        return repr(self.value)

    def describe(self) -> str:
        return f"Scalar {self.dtype.name} = {self.value!r}"

    def at(self, i: Index) -> Term:
        return i.arena.arg(self, compute_dtype(self.dtype))


class Map(Expr):
    """A scalar function over operands of one shape and dtype (scalars fit any shape)."""

    __slots__ = ("args", "fn")
    kind = MAPPER
    children: tuple[Expr, ...] = property(attrgetter("args"))  # type: ignore[assignment]
    fn: ScalarFn
    args: tuple[Expr, ...]

    def __init__(self, fn: ScalarFn, args: tuple[Expr, ...], shape: Shape, dtype: DType) -> None:
        put(self, "fn", fn)
        put(self, "args", args)
        mask = MAPPER
        check_parts(fn, args)
        for arg in args:
            if (arg.shape != shape and arg.shape) or arg.dtype is not dtype:
                expected = f"shape {shape} and dtype {dtype}"
                raise ShapeError(complaint("Map", "args", expected, f"{arg!r}"))
            mask |= arg.exp_type
        typed(self, shape, dtype, mask)

    def outline(self) -> tuple[Any, ...]:
        return (self.fn,)

    @property
    def label(self) -> str:
        return self.fn.name

    def at(self, i: Index) -> Term:
        args = tuple([i.elem(a, i if a.shape else i.put_all(())) for a in self.args])
        return self.fn.terms(i.arena, args)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return tuple(
            (arg, self.received(k, g))
            for k, arg in enumerate(self.args)
            if not isinstance(arg, Scalar) and arg.dtype.kind == "f"
            if self.fn.grad(k).trimmed[0].constant != 0
        )

    def received(self, k: int, g: Expr) -> Expr:
        """What operand `k` receives: `g` times the derivative with respect to it."""
        grad, used = self.fn.grad(k).trimmed
        if grad.constant is not None:
            return product(g, grad.constant)
        operands: tuple[Expr, ...] = (*self.args, self)
        needed = [operands[k] for k in used]
        numbers = [e.value for e in needed if isinstance(e, Scalar)]
        if len(numbers) == len(needed):
            return product(g, grad(*map(float, numbers)))
        if grad.scaled is not None:
            return map_over(grad.scaled, [*needed, g])
        return g * map_over(grad, needed)


class Cast(Expr):
    """`src` converted to another dtype: toward zero, saturating, NaN to 0."""

    __slots__ = ("src",)
    kind = MAPPER
    children: tuple[Expr, ...] = property(lambda e: (e.src,))  # type: ignore[assignment]
    src: Expr

    def __init__(self, src: Expr, dtype: DType, shape: Shape | None = None) -> None:
        check_expr("tcast", "e", src)
        put(self, "src", src)
        sizes = src.shape if shape is None else shape
        typed(self, sizes, dt.of(dtype), MAPPER | src.exp_type)

    def outline(self) -> tuple[Any, ...]:
        return (Cast, self.dtype)

    def at(self, i: Index) -> Term:
        narrow = i.arena.cast(i.elem(self.src, i), self.dtype)
        return i.arena.cast(narrow, compute_dtype(self.dtype))

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.src, cast(g, self.src.dtype)),) if self.src.dtype.kind == "f" else ()


def typed(node: Expr, shape: Shape, dtype: DType, exp_type: int) -> None:
    """Set what every new node has; its pattern is found when it is asked for."""
    put(node, "shape", shape)
    put(node, "dtype", dtype)
    put(node, "exp_type", exp_type)
    put(node, "pattern", None)


def set_address(buffer: Buffer, address: int, owner: Any) -> None:
    """Decide where the data of a buffer is: a memory plan does."""
    put(buffer, "address", address)
    put(buffer, "owner", owner)


def check_expr(where: str, argument: str, value: object) -> None:
    """A TypeError unless `value` is an expression."""
    if not isinstance(value, Expr):
        expected = "an expression (Tensor wraps arrays)"
        raise TypeError(complaint(where, argument, expected, f"a {type(value).__name__}"))


def check_parts(fn: object, args: object) -> None:
    """A TypeError unless these are an operator and a tuple of as many expressions."""
    if not isinstance(fn, ScalarFn) or not isinstance(args, tuple) or len(args) != fn.arity:
        expected = "an operator and a tuple of as many expressions"
        raise TypeError(complaint("Map", "fn, args", expected, f"{fn!r:.60}, {args!r:.60}"))
    for arg in args:
        check_expr("Map", "args", arg)


def checked_number(where: str, value: Any, argument: str = "x", expected: str = "a number") -> Any:
    """`value` as a Python number, which may be deferred; a TypeError where it is none."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.ndim):
        value = value.item()
    if not isinstance(value, bool | int | float | Deferred):
        raise TypeError(complaint(where, argument, expected, f"a {type(value).__name__}"))
    return value


def as_expr(value: Any, dtype: DType, where: str = "assignment", argument: str = "value") -> Expr:
    """`value` itself, or a Scalar; DTypeError for floats beside integers, and what is too large."""
    if isinstance(value, Expr):
        return value
    expected = "an expression or a number (Tensor wraps arrays)"
    value = checked_number(where, value, argument, expected)
    real = isinstance(value, float) or (isinstance(value, Deferred) and not value.whole)
    if real and dtype.kind != "f":
        message = complaint(where, argument, f"a number of {dtype.name}", repr(value))
        raise DTypeError(f"{message}; convert with tcast")
    if dtype.kind in "iu" and beyond(value, dtype):
        held = f"an integer that {dtype.name} holds"
        raise DTypeError(complaint(where, argument, held, repr(value)))
    return Scalar(value, dtype)


def map_over(fn: ScalarFn, operands: Sequence[Operand]) -> Map:
    """`fn` over operands of one shape and dtype; numbers and 0-d Scalars fit any shape."""
    first = next((x for x in operands if isinstance(x, Expr)), None)
    if first is None or len(operands) != fn.arity:
        raise TypeError(f"{fn.name} takes {fn.arity} operands, at least one an expression")
    dtype = first.dtype
    fn.check_dtype(dtype)
    if dtype.kind != "f" and fn.name in COMPARED and len(operands) == 2:
        if any(beyond(x, dtype) for x in operands):
            # all that the type holds lies on one side of the number, as 0 does
            a, b = [x if beyond(x, dtype) else 0 for x in operands]
            always = SCALAR["eq" if COMPARED[fn.name](a, b) else "ne"]
            return map_over(always, (first, first))
        if any(isinstance(x, Deferred) for x in operands) and dtype.size < 8:
            wide = [Cast(x, dt.int64) if isinstance(x, Expr) else x for x in operands]
            return map_over(SCALAR["identity"], [Cast(map_over(fn, wide), dtype)])
    args = tuple([as_expr(x, dtype, fn.name, f"operand {k}") for k, x in enumerate(operands)])
    shape: Shape | None = None
    for k, arg in enumerate(args):
        if arg.dtype is not dtype:
            k, like = (0, arg) if fn.name == "where" and dtype.kind == "b" else (k, first)
            expected = f"dtype {like.dtype.name} as {like!r}"
            raise DTypeError(misfit(fn, k, expected, args) + "; convert with tcast")
        if type(arg) is Scalar or arg.shape == shape or fits_any(arg):
            continue
        if shape is not None:
            raise ShapeError(misfit(fn, k, f"shape {shape}", args) + "; broadcast_to repeats")
        shape = arg.shape
    return Map(fn, args, shape or (), dtype)


def misfit(fn: ScalarFn, k: int, expected: str, args: Sequence[Expr]) -> str:
    """The complaint about operand `k` of a function, with the operands that it stands among."""
    whole = ", ".join(map(brief, args))
    return complaint(fn.name, f"operand {k}", expected, f"{args[k]!r} in {fn.name}({whole})")


def cast(e: Expr, dtype: DType) -> Expr:
    """`e` converted to `dtype`; `e` itself where it has that dtype."""
    return e if isinstance(e, Expr) and e.dtype is dtype else Cast(e, dtype)


def product(a: Expr, b: float) -> Expr:
    """`a * b`, without the multiplication where b is 1; 0 where it is 0, whatever `a` holds."""
    if b == 0:
        return map_over(SCALAR["right"], (a, float(b)))
    return a if b == 1 else -a if b == -1 else a * float(b)
