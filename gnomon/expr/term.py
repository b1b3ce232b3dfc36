"""Terms: what one element of an expression is, as an interned graph of scalar operations.

A node's `at(index)` gives a Term over the index; the readers (oracle, lowering) interpret Terms,
never nodes. Every kind of Term stands here:

    const   a number                            value
    arg     a kernel argument                   slot (any hashable)
    var     a loop or index variable            number; its extent stands in `arena.extent`
    elem    an element of another expression    node; args: an index each axis; a reader expands it
    guard   value where cond holds, else other  args: cond, value, other; only the chosen is read
    load    an element of a buffer              buffer; args: index each axis [, mask]
    fold    a reduction                         reducer; args: bodies; `vars` in the payload
    part    one result of a fold                k; args: the fold
    random  see `functions/primitive.py`
    ...     every other op is a primitive function of `functions/primitive.py`

Equal Terms are one object within an arena, so common sub-expressions are found by construction, and
`free` (a bit mask of the variables a Term depends on) says how far out of a loop it can be hoisted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from gnomon import dtype as dt
from gnomon.dtype import DType
from gnomon.expr import coerce
from gnomon.expr.functions.primitive import FOLD_INT, PRIMITIVES

if TYPE_CHECKING:
    from gnomon.expr.node import Expr
    from gnomon.expr.reducer import Reducer

Number: TypeAlias = bool | int | float
ONCE = (
    "at(i) runs once, not for every element: i.guard(cond, value, other) and "
    "i.select(cond, value, other) choose"
)


def _operator(name: str) -> Callable[[Term, Term | Number], Term]:
    """The method of an operator of Python."""

    def method(self: Term, other: Term | Number) -> Term:
        return self.meet(name, self, self.like(other))

    return method


def _swapped(name: str) -> Callable[[Term, Term | Number], Term]:
    """The same with the term on the right."""

    def method(self: Term, other: Term | Number) -> Term:
        return self.meet(name, self.like(other), self)

    return method


class Term:
    """One scalar operation of an `Arena`; Python's operators on it build further Terms.

    `+ - *` work on any dtype; `//` and `%` are index arithmetic (operands not negative, divisor not
    0); comparisons, `&`, `|` give and take bool Terms. `==` tells whether two are one: use `eq`.
    Where a rule is `watched` that is an error, as is `if`: what a Term is at an index is known when
    a kernel runs.
    """

    __slots__ = ("arena", "args", "dtype", "free", "id", "op", "payload")
    __hash__ = object.__hash__
    free: int

    def __init__(
        self, arena: Arena, op: str, args: tuple[Term, ...], dtype: DType, payload: Any, number: int
    ) -> None:
        self.arena, self.op, self.args, self.dtype = arena, op, args, dtype
        self.payload, self.id = payload, number
        free = 0
        for arg in args:
            free |= arg.free
        if op == "var":
            free = 1 << payload
        elif op == "fold":
            free &= ~mask_of(payload[1])
            for var in payload[1]:
                free |= arena.extent_free(var)
        self.free = free

    __add__, __radd__ = _operator("add"), _swapped("add")
    __sub__, __rsub__ = _operator("sub"), _swapped("sub")
    __mul__, __rmul__ = _operator("mul"), _swapped("mul")
    __truediv__, __rtruediv__ = _operator("div"), _swapped("div")
    __floordiv__, __rfloordiv__ = _operator("idiv"), _swapped("idiv")
    __mod__, __and__, __or__ = _operator("imod"), _operator("and"), _operator("or")
    __lt__, __le__ = _operator("lt"), _operator("le")
    __gt__, __ge__ = _swapped("lt"), _swapped("le")

    def __neg__(self) -> Term:
        return self.arena.op("neg", self)

    def __invert__(self) -> Term:
        return self.arena.op("not", self)

    def __eq__(self, other: object) -> bool:
        if self.arena.watched and self is not other and not (self.op == "arg" and other in (0, 1)):
            raise TypeError(f"index rule: {self!r} == {other!r}: write a.eq(b) of indices; {ONCE}")
        return self is other  # sizes compare so, of which 0 and 1 are always numbers

    def __bool__(self) -> bool:
        if self.arena.watched:
            raise TypeError(f"index rule: {self!r} has no truth value; {ONCE}")
        return True  # there is one

    def eq(self, other: Term | Number) -> Term:
        """Whether both are equal, as a bool Term."""
        return self.meet("eq", self, self.like(other))

    def like(self, other: Term | Number) -> Term:
        """`other` itself, or a constant of this Term's dtype."""
        if isinstance(other, Term):
            return other
        value = coerce.number(self, other) if self.arena.watched else other
        return self.arena.const(value, self.dtype)

    def meet(self, name: str, a: Term, b: Term) -> Term:
        """The operation `name` of two Terms, of which this is one."""
        if self.arena.watched:
            coerce.operands(name, a, b)
        return self.arena.op(name, a, b)

    @property
    def constant(self) -> Number | None:
        """The value of a `const`, else None."""
        return self.payload if self.op == "const" else None

    def __repr__(self) -> str:
        if self.op in ("const", "var", "arg"):
            return f"{'' if self.op == 'const' else self.op[0]}{self.payload}"
        return f"{self.op}#{self.id}({', '.join(f'{a.op}#{a.id}' for a in self.args)})"


class Arena:
    """Makes and interns the Terms of one reading; not shared between threads.

    While a rule that is not the package's own is asked, `watched` is the name of its node, and
    where its indices are not known to lie inside its operands the arena `clips` them; see
    `expr/bounds.py`.
    """

    def __init__(self) -> None:
        self.watched = ""
        self.clips = False
        self.table: dict[Hashable, Term] = {}
        self.extent: list[Term] = []

    def make(self, op: str, args: tuple[Term, ...], dtype: DType, payload: Hashable = None) -> Term:
        """The Term of these parts: the one that exists, or a new one."""
        # a float's sign of zero and its NaN must not be lost to `==` between keys
        key = (op, tuple([a.id for a in args]), dtype.flag, key_of(payload))
        term = self.table.get(key)
        if term is None:
            term = Term(self, op, args, dtype, payload, len(self.table))
            self.table[key] = term
        return term

    def const(self, value: Number, dtype: DType = dt.int64) -> Term:
        """A number of `dtype`."""
        return self.make("const", (), dtype, cast_number(value, dtype))

    def arg(self, slot: Hashable, dtype: DType = dt.int64) -> Term:
        """A kernel argument."""
        return self.make("arg", (), dtype, slot)

    def var(self, extent: Term | int) -> Term:
        """A new index variable that runs from 0 to `extent` - 1."""
        number = len(self.extent)
        self.extent.append(extent if isinstance(extent, Term) else self.const(extent))
        return self.make("var", (), dt.int64, number)

    def extent_free(self, var: int) -> int:
        """The variables that the extent of `var` depends on."""
        return self.extent[var].free

    def elem(self, node: Expr, index: Sequence[Term]) -> Term:
        """The element of `node` at `index`, for a reader to expand."""
        if self.clips and node.shape:
            if 0 in node.shape:
                return self.const(0, compute_dtype(node.dtype))
            index = self.clipped(index, node.shape)
        return self.make("elem", tuple(index), compute_dtype(node.dtype), node)

    def clipped(self, index: Sequence[Term], shape: Sequence[Any]) -> list[Term]:
        """The nearest index inside `shape`, which has no 0 in it."""
        least = self.const(0)
        return [
            self.op("min", self.op("max", at, least), least + n - 1)
            for at, n in zip(index, shape, strict=True)
        ]

    def guard(self, cond: Term, value: Term, other: Term) -> Term:
        """`value` where `cond` holds, `other` elsewhere, where loads of `value` are not done."""
        if cond.constant is not None:
            return value if cond.constant else other
        return self.make("guard", (cond, value, other), value.dtype)

    def fold(
        self,
        reducer: Reducer,
        extents: Sequence[Term | int],
        bodies: Callable[[tuple[Term, ...]], Iterable[Term]],
    ) -> tuple[Term, ...]:
        """The results of `reducer` over new variables of these extents."""
        index = tuple(self.var(n) for n in extents)
        body = tuple(bodies(index))
        if not index:  # a single element is its own reduction
            return body
        return self.parts(reducer, tuple(v.payload for v in index), body)

    def parts(
        self, reducer: Reducer, variables: tuple[int, ...], body: tuple[Term, ...]
    ) -> tuple[Term, ...]:
        """The results of a fold of `body` over existing variables."""
        dtypes = reducer.dtypes(tuple(b.dtype for b in body))
        whole = self.make("fold", body, dtypes[0], (reducer, variables))
        return tuple(self.make("part", (whole,), d, k) for k, d in enumerate(dtypes))

    def select(self, cond: Term, yes: Term, no: Term) -> Term:
        """`yes` where `cond` holds, else `no`; both are evaluated."""
        return self.op("select", cond, yes, no)

    def cast(self, value: Term, dtype: DType) -> Term:
        """Conversion: truncates toward zero, saturates at the ends, NaN gives 0."""
        if value.dtype is dtype:
            return value
        if value.constant is not None:
            return self.const(value.constant, dtype)
        return self.make("cast", (value,), dtype)

    def bitcast(self, value: Term, dtype: DType) -> Term:
        """The same bits as a number of another dtype of the same size."""
        return value if value.dtype is dtype else self.make("bitcast", (value,), dtype)

    def op(self, name: str, *args: Term) -> Term:
        """A primitive function of Terms, simplified where that is exact."""
        row = PRIMITIVES[name]
        if self.watched:
            args = self.met(name, args)
        if args[-1].dtype is dt.int64:
            simple = self.simplify_index(name, args)
            if simple is not None:
                return simple
        if name in ("and", "or") and args[0].dtype is dt.bool_:
            for known, other in (args, args[::-1]):
                if known.constant is not None:
                    return other if known.constant == (name == "and") else known
        if name == "not" and args[0].constant is not None and args[0].dtype is dt.bool_:
            return self.const(not args[0].constant, dt.bool_)
        if name == "select":
            if args[0].constant is not None:
                return args[1] if args[0].constant else args[2]
            if args[1] is args[2]:
                return args[1]
        dtype = dt.bool_ if row.gives_bool else args[-1].dtype
        return self.make(name, args, dtype)

    def met(self, name: str, args: tuple[Term, ...]) -> tuple[Term, ...]:
        """The operands of `name` in one dtype, but for the condition of a choice."""
        if name in ("select", "rare"):
            return (args[0], *coerce.met(self, args[1:]))
        return coerce.met(self, args)

    def simplify_index(self, name: str, args: tuple[Term, ...]) -> Term | None:
        """Exact simplifications of integer arithmetic, or None."""
        values = [a.constant for a in args]
        if None not in values and name in FOLD_INT:
            result = FOLD_INT[name](*values)
            return self.const(result, dt.bool_ if isinstance(result, bool) else dt.int64)
        if len(args) != 2:
            return None
        a, b = args
        if name == "add":
            return a if values[1] == 0 else b if values[0] == 0 else None
        if name == "sub":
            return a if values[1] == 0 else self.const(0) if a is b else None
        if name == "mul":
            if 0 in values:
                return self.const(0)
            return a if values[1] == 1 else b if values[0] == 1 else None
        within = a.op == "var" and self.extent[a.payload] is b  # a variable is below its extent
        if name == "idiv":
            return a if values[1] == 1 else self.const(0) if within else None
        if name == "imod":
            return self.const(0) if values[1] == 1 else a if within else None
        return None


def mask_of(variables: Iterable[int]) -> int:
    """The bit mask of variable numbers."""
    mask = 0
    for var in variables:
        mask |= 1 << var
    return mask


def key_of(payload: Hashable) -> Hashable:
    """`payload` as a key under which 1, 1.0, True, 0.0 and -0.0 differ and NaN equals itself."""
    if isinstance(payload, float):
        return ("float", payload.hex())
    return (type(payload), payload) if isinstance(payload, bool | int) else payload


def distinct(value: Hashable) -> Hashable:
    """`value` as a part of a key, told apart as by `key_of`, in tuples too; of plain values."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, float):
        return ("float", value.hex())
    return tuple(map(distinct, value)) if type(value) is tuple else value


def cast_number(value: Number, dtype: DType) -> Number:
    """A Python number as `dtype` holds it: the rule of `Arena.cast`.

    Floats saturate and integers keep their low bits, as they do in registers: what a user gives
    has been through `DType.nearest` before it is a Term.
    """
    if dtype.kind == "f":
        try:
            return float(value)
        except OverflowError:  # an integer beyond every float
            return float("inf") if value > 0 else -float("inf")
    if dtype.kind == "b":
        return bool(value)
    if isinstance(value, float):
        return dtype.nearest(value)
    wrapped = int(value) & ((1 << (8 * dtype.size)) - 1)
    signed = dtype.kind == "i" and wrapped >> (8 * dtype.size - 1)
    return wrapped - (1 << (8 * dtype.size)) if signed else wrapped


def compute_dtype(dtype: DType) -> DType:
    """The dtype in which elements of `dtype` are computed: half floats in float32."""
    return dt.float32 if dtype.kind == "f" and dtype.size == 2 else dtype
