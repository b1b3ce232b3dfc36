"""jit: a function of several assignments as one native call.

The function is traced: it runs once on stand-ins of its tensors and numbers, and the statements
that it makes are kept instead of carried out. Neighbours over one range become one loop (see
`plan/fuse.py`), and all of them one program. Later calls give it their addresses and numbers; no
line of the function runs again.

States of a `Jitted`: it has a *trace* for each signature (shapes, strides and dtypes of the
tensors, types of the numbers, values of what is static) and for each way in which tensors
overlapped when it was made. A call goes to the trace that was used last, then to the others of its
signature; where none holds, the function is traced again. What cannot be made a program, and a
signature with too many traces, runs as the plain function. Calls from several threads at a time use
traces of their own.
"""

from __future__ import annotations

import functools
import gc
import inspect
import operator
import types
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np

from gnomon.base import DTypeError, ParamError, complaint, nearest, shown
from gnomon.dtype import DType, int64
from gnomon.expr.deferred import TRACED, Deferred, TraceError
from gnomon.expr.functions.machine import beyond
from gnomon.expr.node import Buffer, Expr, Scalar
from gnomon.expr.pattern import EPOCH, NONE, pattern_now
from gnomon.expr.rewrite import substitute
from gnomon.expr.walk import postorder
from gnomon.plan.statement import Store
from gnomon.runtime.execution.program import Step
from gnomon.runtime.statements.dispatch import TRACERS, tracer, tracing
from gnomon.runtime.statements.launch import Launch, NoLaunch, Place, Reading, Work, kind_of, tied
from gnomon.runtime.statements.prepare import check, in_turn, prepare
from gnomon.shadow.random import Random, taken
from gnomon.shadow.scratch import Scratch
from gnomon.shadow.tensor import Tensor

VARIANTS = 8  # traces of one signature
KEPT = 512  # signatures
_SPACING, _MIDDLE = 1 << 44, 1 << 43  # of the memory of stand-ins
_NUMBERS = (float, int)
_LATER: Any = object()  # the function comes with the next call, as it does to a decorator


def jit(function: Any = _LATER, *, static: Sequence[str] = ()) -> Any:
    """`function`, which assigns to its tensors, so that a call of it is one native call.

    Its arguments are tensors, numbers, which may change from call to call, and anything hashable
    else, for each value of which it is traced anew; `static` names numbers to be taken so.

    >>> import numpy as np
    >>> from gnomon.shadow.tensor import Tensor
    >>> @jit
    ... def update(w, m, g, lr, mu=0.5):
    ...     m[:] = mu * m - lr * g
    ...     w[:] += m
    >>> w, m, g = (Tensor(np.ones(3, np.float32)) for _ in range(3))
    >>> update(w, m, g, 0.25)
    >>> update(w, m, g, 0.5)
    >>> w.numpy(), m.numpy()
    (array([0.875, 0.875, 0.875], dtype=float32), array([-0.375, -0.375, -0.375], dtype=float32))

    An exception that the function raises while it is traced comes out of the call as it is: none of
    its lines has been carried out then, and the next call traces anew.

    Raises:
        TraceError: when called, where what the function does depends on values that are not known
            before it runs, where it gives something back, or where it assigns nothing though all
            that it is given are tensors and numbers.
        TypeError: `function` is none, or Python does not know its arguments; `static` is no
            sequence of names.
        ParamError: `static` names what is no argument.
    """
    if function is _LATER:
        return functools.partial(jit, static=static)
    return Jitted(function, static)


def listed(names: Any) -> Sequence[Any]:
    """What a sequence holds; (None,) where it is none."""
    try:
        return tuple(names)
    except TypeError:
        return (None,)


class Jitted:
    """A function of assignments, traced once for each signature."""

    def __init__(self, function: Callable[..., None], static: Sequence[str] = ()) -> None:
        if not callable(function):
            raise TypeError(complaint("jit", "function", "a function", shown(function)))
        if isinstance(static, str) or not all(isinstance(name, str) for name in listed(static)):
            expected = "a sequence of names of arguments"
            raise TypeError(complaint("jit", "static", expected, shown(static)))
        functools.update_wrapper(self, function)
        self.function = function
        self.name = getattr(function, "__name__", repr(function))
        try:
            self.signature = inspect.signature(function)
        except (TypeError, ValueError):
            expected = "a function written in Python"
            raise TypeError(complaint("jit", "function", expected, shown(function))) from None
        names = list(self.signature.parameters)
        for name in static:
            if name not in names:
                expected = f"names of arguments, {', '.join(names)}"
                raise ParamError(complaint("jit", "static", expected, name))
        self.names = names
        self.static = frozenset(static)
        parameters = self.signature.parameters.values()
        if any(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters):
            expected = "arguments that may be given by position"
            got = f"{self.name}{self.signature}"
            raise ParamError(complaint("jit", "function", expected, got))
        self.more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        self._count = -1 if self.more else len(names)
        self._defaults = tuple([p.default for p in parameters if p.default is not p.empty])
        self._last: Trace | None = None
        self._traces: dict[Hashable, list[Trace]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        if len(args) != self._count or kwargs:
            args = self._positional(args, kwargs)
        last = self._last
        if TRACERS or last is None or not last.run(args):
            self._call(args)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __repr__(self) -> str:
        return f"<jit of {self.name}>"

    def __reduce__(self) -> Any:
        """Pickled by its name, as functions are; made again of what has none."""
        return getattr(self, "__qualname__", (Jitted, (self.function, tuple(self.static))))

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in their order."""
        missing = self._count - len(args)
        if not kwargs and 0 < missing <= len(self._defaults):
            return args + self._defaults[-missing:]
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            unknown = next((k for k in kwargs if k not in self.names), None)
            hint = "" if unknown is None else nearest(unknown, self.names)
            raise TypeError(f"{self.name}: {error}{hint}") from None
        bound.apply_defaults()
        return bound.args

    def _call(self, args: tuple[Any, ...]) -> None:
        if tracer() is not None:  # a part of the function that is traced
            refuse_result(self.name, self.function(*args))
            return
        args = tuple([a.item() if isinstance(a, np.generic) else a for a in args])
        key = tuple([self._part(name, a) for name, a in zip(self.named(args), args, strict=True)])
        if any(part is NONE for part in key):  # each statement is to be checked
            refuse_result(self.name, self.function(*args))
            return
        if len(self._traces) >= KEPT and key not in self._traces:
            self._traces.clear()
        traces = self._traces.setdefault(key, [])
        trace = next((t for t in traces if t.run(args)), None) or self._traced(traces, args)
        if trace is None:
            refuse_result(self.name, self.function(*args))
            return
        static = any(type(part) is tuple for part in key)
        self._last = None if static or self.more or trace.empty else trace

    def _traced(self, traces: list[Trace], args: tuple[Any, ...]) -> Trace | None:
        """A new trace, with its work done; None where the function must run as it is."""
        traces[:] = [t for t in traces if t.current]
        if len(traces) >= VARIANTS or any(t.impossible for t in traces):
            return None
        trace = Trace(self, args)
        if not trace.current:  # a tensor took another shape meanwhile
            return None
        traces.append(trace)
        return trace if trace.run(args) else None

    def named(self, args: Sequence[Any]) -> list[str]:
        """The names of arguments, those beyond the declared ones by their number."""
        if not self.more:
            return self.names
        *own, rest = self.names
        return [*own, *(f"{rest}[{k}]" for k in range(len(args) - len(own)))]

    def is_number(self, name: str, value: Any) -> bool:
        """Whether an argument is a number that each call brings."""
        return type(value) in _NUMBERS and name not in self.static

    def _part(self, name: str, value: Any) -> Any:
        """What of an argument is part of the signature."""
        if isinstance(value, Tensor):  # programs of native steps are the processor's
            return pattern_now(value) if value.device == "cpu" else NONE
        if isinstance(value, Expr | np.ndarray):
            expected = "a tensor, a number or something hashable (Tensor wraps arrays)"
            raise TraceError(complaint(self.name, name, expected, f"a {type(value).__name__}"))
        if holds_tensors(value):
            expected = "a tensor, a number or something hashable: tensors as arguments of their own"
            raise TraceError(complaint(self.name, name, expected, shown(value)))
        if self.is_number(name, value):
            return type(value)
        try:
            hash(value)
        except TypeError:
            expected = "a tensor, a number or something hashable"
            got = f"a {type(value).__name__}"
            raise TraceError(complaint(self.name, name, expected, got)) from None
        return (type(value), value)


def holds_tensors(value: Any) -> bool:
    """Whether there are tensors in a tuple: its traces would work on these alone, and keep them."""
    return isinstance(value, tuple) and any(isinstance(v, Expr) or holds_tensors(v) for v in value)


def refuse_result(name: str, result: Any) -> None:
    """Raises unless a function gave nothing back."""
    if result is not None:
        expected = "nothing: a function that is traced assigns to its tensors"
        raise TraceError(complaint(name, "result", expected, f"a {type(result).__name__}"))


class Piece(NamedTuple):
    """Statements that came together: one, or several whose values are all taken first."""

    stores: Sequence[Store]
    together: bool


class Draw(NamedTuple):
    """Numbers that each call takes of a random stream."""

    source: Random
    numbers: int


class Trace:
    """The statements of a function for one signature, as a program."""

    def __init__(self, jitted: Jitted, args: tuple[Any, ...]) -> None:
        self._epoch = EPOCH.value
        found = Recorder(jitted, args)
        self.draws = found.draws
        self.computed = found.computed
        self.fixed = tuple(found.captured)
        self._launch: Launch | None = None
        if found.pieces and all(b.device == "cpu" for b in found.captured):
            try:
                self._launch = Launch(found.work())
            except NoLaunch:
                self._launch = None
        self.empty = not found.pieces
        self.impossible = self._launch is None and not self.empty

    @property
    def current(self) -> bool:
        """Whether no tensor has taken another shape since."""
        return self._epoch == EPOCH.value

    def run(self, args: tuple[Any, ...]) -> bool:
        """Do the work on these arguments; False, with nothing done, where they are others."""
        launch = self._launch
        if launch is None:
            return self.empty
        if not self.draws and not self.computed:
            done = launch.call(args, self.fixed)
        else:
            done = self._with_others(launch, args)
        if done is None:
            launch.failed()
        return bool(done)

    def _with_others(self, launch: Launch, args: tuple[Any, ...]) -> bool | None:
        try:
            numbers = [compute(args) for compute in self.computed]
        except (TypeError, ArithmeticError, IndexError):
            return False  # other arguments, or what the plain function will say of them
        places = [taken(source, count) for source, count in self.draws]
        done = launch.call(args, (*self.fixed, *places, *numbers))
        if done is False:
            for (source, count), place in zip(reversed(self.draws), reversed(places), strict=True):
                source.give_back(place, count)
        return done


class Recorder:
    """Runs a function on stand-ins and keeps its statements.

    A stand-in of a tensor lies where no memory is: regions far apart, for tensors that overlap one
    region with their distance in it. So a view that the function makes tells by its address what it
    is a view of.
    """

    def __init__(self, jitted: Jitted, args: tuple[Any, ...]) -> None:
        self.pieces: list[Piece] = []
        self.draws: list[Draw] = []
        self.computed: list[Callable[[Sequence[Any]], Any]] = []
        self.args = args
        self.tensors = [k for k, a in enumerate(args) if isinstance(a, Tensor)]
        self.names = jitted.named(args)
        pairs = enumerate(zip(self.names, args, strict=True))
        self.numbers = [k for k, (name, a) in pairs if jitted.is_number(name, a)]
        self.others = sorted({*range(len(args))}.difference(self.tensors, self.numbers))
        self._drawn: list[Buffer] = []
        self.streams: WeakSet[Random] = WeakSet()
        self._trace(jitted)
        self._renew()
        leaves = [n for n in postorder(self._parts()) if isinstance(n, Buffer | Scalar)]
        self._leaves = [n for n in leaves if isinstance(n, Buffer)]
        self._scalars = [
            n for n in leaves if isinstance(n, Scalar) and isinstance(n.value, Deferred)
        ]
        own = {id(b) for b in self._drawn}
        self.captured = [b for b in self._leaves if b.device != TRACED and id(b) not in own]

    # -- while it runs --------------------------------------------------------------------------

    def _trace(self, jitted: Jitted) -> None:
        tensors = [self.args[k] for k in self.tensors]
        regions = tied(tensors, range(len(tensors)))
        given = list(self.args)
        for place, k in enumerate(self.tensors):
            owner, delta = regions[place]
            given[k] = stand_in(tensors[place], address_in(owner) + delta, self.names[k])
        for k in self.numbers:
            given[k] = Deferred(operator.itemgetter(k), self.names[k], type(self.args[k]) is int, k)
        epoch = EPOCH.value
        try:
            with tracing(self):
                result = jitted.function(*given)
        except TraceError as error:
            raise TraceError(f"{jitted.name}: {error}") from error
        except Exception as error:
            if self.others or self.numbers:
                error.add_note(f"in {jitted.name}, {self._circumstances()}")
            raise
        refuse_result(jitted.name, result)
        if self.streams:
            gc.collect()  # one in a cycle goes
        if self.streams:
            expected = "no stream of random numbers that is kept: make it outside"
            got = "a Random that outlives the call"
            raise TraceError(complaint(jitted.name, "function", expected, got))
        if not self.pieces and not self.others and not jitted.more:
            got = "none: what it computes is stored nowhere"
            raise TraceError(complaint(jitted.name, "function", "assignments to tensors", got))
        if epoch != EPOCH.value:
            raise TraceError(f"{jitted.name}: a tensor took another shape while it was traced")

    def _circumstances(self) -> str:
        """What the function is traced with, and the numbers whose values it cannot ask for."""
        values = ", ".join(f"{self.names[k]}={shown(self.args[k])}" for k in self.others)
        numbers = ", ".join(self.names[k] for k in self.numbers)
        unknown = f"not known then: {numbers} (`static` names those whose values it needs)"
        said = [f"traced with {values}"] if values else ["which is traced"]
        return "; ".join([*said, unknown] if numbers else said)

    def take(self, stores: Sequence[Store], together: bool) -> None:
        """Keep statements; raises where a value does not fit."""
        for store in stores:
            check(store)
        self.pieces.append(Piece(stores, together))

    def draw(self, source: Random, count: int) -> Buffer:
        """What stands for the place of random numbers that each call takes."""
        held = np.zeros(2, np.int64)
        self._drawn.append(Buffer((2,), int64, None, held.ctypes.data, held))
        self.draws.append(Draw(source, count))
        return self._drawn[-1]

    # -- afterwards -----------------------------------------------------------------------------

    def _stores(self) -> list[Store]:
        return [s for piece in self.pieces for s in piece.stores]

    def _parts(self) -> list[Expr]:
        return [e for s in self._stores() for e in (s.dest, s.value)]

    def _renew(self) -> None:
        """Have each call begin with the arrays that the function made for itself."""
        leaves = [n for n in postorder(self._parts()) if isinstance(n, Buffer)]
        scratch = Scratch(self._stores(), leaves)
        if not scratch.others:
            return
        parts = iter(substitute(self._parts(), scratch.others))
        self.pieces = [
            Piece([Store(leaf_of(next(parts)), s.saver, next(parts)) for s in p.stores], p.together)
            for p in self.pieces
        ]
        del leaves
        before = scratch.settle(self._stores())
        self.pieces[:0] = [Piece([store], False) for store in before]

    def work(self) -> Work:
        """What a launch of the statements is made of: given the arguments, and all else."""
        reading = Reading(2)
        sources = [(0, k, self.args[k]) for k in self.tensors]
        sources += [(1, k, b) for k, b in enumerate(self.captured)]
        places = []
        for source, k, buffer in sources:
            register = reading.thing(source, None, k)
            reading.same(register, "pattern", Buffer, pattern_now(buffer))
            places.append(Place(reading.address(register), buffer, True))
        for k, buffer in enumerate(self._drawn):
            register = reading.thing(1, None, len(self.captured) + k)
            places.append(Place(reading.address(register), buffer))
        for k in self.numbers:
            reading.same(reading.thing(0, None, k), "__class__", object, type(self.args[k]))
        numbers = [(self._number(reading, s), s) for s in self._scalars]
        return Work(reading, places, numbers, self._steps)

    def _number(self, reading: Reading, scalar: Scalar) -> int:
        """The instruction that reads a number: an argument itself, or computed from them."""
        value, dtype = scalar.value, scalar.dtype
        if value.place is not None and dtype.kind == "f":
            return reading.value(0, None, kind_of(scalar), value.place)
        compute = value.compute
        if dtype.kind != "f":
            compute = functools.partial(_whole, value.compute, dtype)
        self.computed.append(compute)
        place = len(self.captured) + len(self._drawn) + len(self.computed) - 1
        return reading.value(1, None, kind_of(scalar), place)

    def _steps(self, buffers: Sequence[Buffer], scalars: Sequence[Scalar]) -> list[Step]:
        """The statements over other memory and numbers."""
        others = buffers[len(self.tensors) :]
        new: dict[Expr, Expr] = dict(zip([*self.captured, *self._drawn], others, strict=True))
        new.update(zip(self._scalars, scalars, strict=True))
        for leaf in self._leaves:
            if leaf.device == TRACED:
                owner = leaf.address // _SPACING - 1
                address = buffers[owner].address + leaf.address - address_in(owner)
                new[leaf] = Buffer(leaf.shape, leaf.dtype, leaf.strides, address)
        values = iter(substitute([s.value for p in self.pieces for s in p.stores], new))
        steps: list[Step] = []
        waiting: list[Store] = []
        for piece in self.pieces:
            stores = [Store(leaf_of(new[s.dest]), s.saver, next(values)) for s in piece.stores]
            if not piece.together:
                waiting += stores
                continue
            steps += [*in_turn(waiting, "jit"), *prepare(stores, "jit")]
            waiting = []
        return [*steps, *in_turn(waiting, "jit")]


def leaf_of(e: Expr) -> Buffer:
    """What took the place of a leaf: a leaf."""
    assert isinstance(e, Buffer)
    return e


def stand_in(tensor: Tensor, address: int, argument: str) -> Tensor:
    """A tensor of the same shape, strides and dtype that must not be read."""
    shape, strides = tensor.shape, tensor.strides
    return Tensor.of(Buffer(shape, tensor.dtype, strides, address, argument, TRACED))


def address_in(region: int) -> int:
    """Where the first tensor of a region lies while a function is traced."""
    return (region + 1) * _SPACING + _MIDDLE


def _whole(compute: Callable[[Sequence[Any]], Any], dtype: DType, values: Sequence[Any]) -> int:
    """A number as an integer type holds it; int64 compares with any."""
    value = compute(values)
    if dtype.kind in "iu" and dtype.size < 8 and beyond(value, dtype):
        expected = f"an integer that {dtype.name} holds"
        raise DTypeError(complaint("jit", "number", expected, shown(value)))
    return (int64 if dtype.kind == "b" else dtype).nearest(value)
