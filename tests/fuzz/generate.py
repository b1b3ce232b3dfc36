"""Lines of random programs: made one after another, knowing what the lines before have made.

A line is Python over `w` (the World), `shadow`, `np` and the names of earlier lines. Most are
right; in some an argument is exchanged for something that does not belong there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from gnomon import shadow
from gnomon.expr import fn
from gnomon.expr.functions.scalar import ScalarFn
from gnomon.expr.node import Expr
from gnomon.shadow import Tensor
from tests.fuzz import lines

DTYPES = "float32 float64 int32 float16 bfloat16 uint8 int8 int64 bool".split()
LAYOUTS = ("dense", "padded", "strided", "reversed", "transposed")
SIZES = (0, 1, 2, 3, 5, 7, 16, 17, 31, 67, 131)
SAVERS = ("saveto", "saveto", "plusto", "minusto", "multo", "divto")
FUNCTIONS = sorted(n for n in dir(fn) if isinstance(getattr(fn, n), ScalarFn))
SAFE = "add sub mul maximum minimum lt le eq neg abs sign relu floor square where".split()
HOSTILE = """
    None -1 0 1 2 3 -5 2**31 -2**31 2**63-1 2**63 -2**63-1 2**64 10**30 1.5 -0.0 float('nan')
    float('inf') True False 'x' '' b'x' () (0,) (-1,) (2,3) (3,2) (2,'x') ((1,2),(3,)) [1,2] []
    {} object() np.float32(2) np.int64(3) np.int8(-128) np.zeros((2,3),np.float32) np.zeros(3)
    'float32' 'int8' 'float' np.dtype('complex64') 'sum' 'max' slice(None) slice(0,2) len w
    slice(None,None,-1) shadow.fn.exp shadow.red.sum shadow.red.maximum shadow (2**40,) (2**62,4)
    (1,1,1,1,1,1,1,1) (None,2) (2.0,3) 2j np.array(2) range(3) shadow.scalar(2) Ellipsis
    shadow.scalar(3,'int64')
""".split()
# names of functions that make expressions or compute, called with anything
CALLS = [
    n
    for n in [*shadow.__all__, "range", "slice"]
    if callable(getattr(shadow, n))
    and n not in ("extension", "Tensor", "op", "shutdown_tensor_engine")
]


class Generator:
    """Makes lines; `names` is the namespace of the program."""

    def __init__(self, rng: random.Random, names: dict[str, Any]) -> None:
        self.rng, self.names, self.count = rng, names, 0

    def line(self) -> str:
        """The next line."""
        if not self.every(Expr):
            return self.leaf()
        kinds: list[Callable[[], str]] = [
            self.leaf, self.alias, self.map, self.map, self.chain, self.chain, self.store,
            self.store, self.store, self.store, self.anything, self.anything, self.method,
            self.look,
            self.both,
            self.operator,
            self.traced,
        ]  # fmt: skip
        others = [*lines.MORE, *lines.RARE]
        chosen = self.rng.randrange(len(kinds) + len(others))
        return kinds[chosen]() if chosen < len(kinds) else others[chosen - len(kinds)](self)

    # -- what there is --------------------------------------------------------------------------

    def every(self, kind: type) -> list[str]:
        return [n for n, v in self.names.items() if isinstance(v, kind) and n[0] in "te"]

    def expr(self) -> str:
        """A name of an expression, the latest more often."""
        found = self.every(Expr)
        return self.rng.choice(found[-4:] if self.rng.random() < 0.6 else found)

    def tensor(self) -> str:
        found = self.every(Tensor)
        return self.rng.choice(found) if found else self.expr()

    def like(self, name: str) -> str:
        """An expression of the shape and dtype of `name`, or a number."""
        e = self.names[name]
        alike = [
            n
            for n in self.every(Expr)
            if (self.names[n].shape, self.names[n].dtype) == (e.shape, e.dtype)
        ]
        if self.rng.random() < 0.25:
            return self.rng.choice(["2", "-1", "0", "3"] + ["0.5"] * (e.dtype.kind == "f"))
        return self.rng.choice(alike)

    def every_tensor_like(self, name: str) -> list[str]:
        """The names of tensors of the shape and dtype of `name`."""
        e = self.names[name]
        found = [(n, self.names[n]) for n in self.every(Tensor)]
        return [n for n, t in found if (t.shape, t.dtype) == (e.shape, e.dtype)]

    def dtype(self) -> str:
        return self.rng.choice(DTYPES)

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def value(self) -> str:
        """Anything at all."""
        return self.rng.choice(HOSTILE) if self.rng.random() < 0.6 else self.expr()

    def shape(self) -> tuple[int, ...]:
        rank = self.rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6))
        sizes = SIZES if rank < 3 else SIZES[:5]
        return tuple(self.rng.choice(sizes) for _ in range(rank))

    def size(self, low: int = -2, high: int = 5) -> str:
        return str(self.rng.randint(low, high))

    # -- lines ----------------------------------------------------------------------------------

    def leaf(self) -> str:
        known = [self.names[n] for n in self.every(Expr)]
        shape, dtype = self.shape(), self.rng.choice(DTYPES)
        if known and self.rng.random() < 0.6:
            shape = self.rng.choice(known).shape
        if known and self.rng.random() < 0.6:
            dtype = self.rng.choice(known).dtype.name
        if self.rng.random() < 0.15:
            return f"{self.fresh('t')} = shadow.TensorContainer({shape}, {dtype!r}, 2)"
        layout, seed = self.rng.choice(LAYOUTS), self.rng.randrange(1000)
        return f"{self.fresh('t')} = w.leaf({shape}, {dtype!r}, {layout!r}, {seed})"

    def alias(self) -> str:
        """Two views of the same memory of one shape, or one of any."""
        name = self.tensor()
        rank = self.names[name].ndim
        if not rank:
            return f"{self.fresh('t')} = {name}[:]"
        axis = self.rng.randrange(rank)
        before = ":, " * axis
        cut = self.rng.choice(["1:", ":-1", "::-1", "::2", "1::2", "2:", ":-2", "1:-1", ":", "-3:"])
        view = self.rng.choice([f"a[{before}{cut}]"] * 4 + ["a.T", "a[None]", "a.reshape(-1)"])
        return f"{self.fresh('t')} = w.alias({name}, lambda a: {view})"

    def map(self) -> str:
        name = self.rng.choice(SAFE if self.rng.random() < 0.7 else FUNCTIONS)
        first = self.expr()
        arity = getattr(fn, name).arity
        args = [first] + [self.like(first) for _ in range(arity - 1)]
        self.rng.shuffle(args)
        if self.rng.random() < 0.2 and self.names[first].dtype.kind != "f":
            return f"{self.fresh('e')} = {first} / {self.like(first)}"
        return f"{self.fresh('e')} = shadow.fn.{name}({', '.join(self.spoiled(args))})"

    def spoiled(self, args: list[str]) -> list[str]:
        """`args`, now and then with one that does not belong there."""
        if args and self.rng.random() < 0.08:
            args[self.rng.randrange(len(args))] = self.value()
        return args

    def chain(self) -> str:
        name = self.expr()
        rule = self.rng.choice(list(CHAINS))
        args = self.spoiled(list(CHAINS[rule](self, name)))
        return f"{self.fresh('e')} = {rule}({', '.join(args)})"

    def store(self) -> str:
        """A statement into something of the right shape, which often shares memory."""
        value = self.expr()
        e = self.names[value]
        fit = [
            n
            for n in self.every(Tensor)
            if self.names[n].shape == e.shape and self.names[n].dtype is e.dtype
        ]
        saver = self.rng.choice(SAVERS)
        if not fit or self.rng.random() < 0.2:
            t = self.fresh("t")
            layout, seed = self.rng.choice(LAYOUTS), self.rng.randrange(1000)
            made = f"{t} = w.leaf({e.shape}, {e.dtype.name!r}, {layout!r}, {seed})"
            return f"{made}; w.put({t}, {saver!r}, {value})"
        if self.rng.random() < 0.05:
            value = self.value()
        return f"w.put({self.rng.choice(fit)}, {saver!r}, {value})"

    def both(self) -> str:
        """A statement into tensors that are joined."""
        name = self.tensor()
        e = self.names[name]
        fit = [
            n
            for n in self.every(Tensor)
            if self.names[n].ndim == e.ndim and self.names[n].dtype is e.dtype
        ]
        axis = _axis(self, name)
        joined = f"shadow.concat({name}, {self.rng.choice(fit or [name])}, {axis})"
        part = self.rng.choice(
            [
                joined,
                joined,
                f"shadow.flip({joined}, {axis})",
                f"shadow.slice_ex({joined}, (1,), (4,))",
            ]
        )
        value = self.rng.choice(
            ["1", "2", self.expr(), f"{joined} * 2", f"shadow.flip({joined}, 0)"]
        )
        return f"w.put({part}, {self.rng.choice(SAVERS)!r}, {value})"

    def operator(self) -> str:
        """An operator of one's own, over an expression."""
        name = self.expr()
        made = f"w.operator({self.scalar(3)!r})"
        return f"{self.fresh('e')} = shadow.F({made})({name}, {self.like(name)})"

    def scalar(self, depth: int) -> str:
        """A scalar expression in Python."""
        if depth == 0 or self.rng.random() < 0.1:
            return self.rng.choice(["x", "y", "x", "y", "1", "0.5", "k", "-3", "math.inf", "True"])
        a, b, c = (self.scalar(depth - 1) for _ in range(3))
        sign = self.rng.choice("+ - * / // % **".split())
        order = self.rng.choice("< <= == != > >=".split())
        return self.rng.choice(
            [f"({a} {sign} {b})"] * 3
            + [f"({a} if {b} {order} {c} else {b})", f"({a} {order} {b} < {c})", f"-{a}"]
            + [f"({a} and {b} or not {c})", f"max({a}, {b})", f"math.sin({a})", f"np.exp({a})"]
            + [f"fn.tanh({a})", f"int({a})", f"abs({a})", f"np.where({a}, {b}, {c})", f"round({a})"]
            + [
                self.rng.choice(
                    ["array", "x[0]", "z", "f(x, y)", "x.real", "1 / 0", "'x'", "(lambda: 1)"]
                )
            ]
        )

    def traced(self) -> str:
        """A function of two assignments by `jit`."""
        first = self.tensor()
        e = self.names[first]
        fit = [
            n
            for n in self.every(Tensor)
            if (self.names[n].shape, self.names[n].dtype) == (e.shape, e.dtype)
        ]
        second, axis = self.rng.choice(fit or [first]), _axis(self, first)
        values = [
            "a + b",
            "b * 2",
            "a - b",
            f"shadow.flip(a, {axis})",
            f"b + shadow.flip(b, {axis})",
        ]
        values += [
            "3",
            f"b - shadow.broadcast_to(shadow.reduce_keepdim('max', a, {axis}), b.shape)",
        ]
        one, two = (f"{self.rng.choice('ab')}.assign({self.rng.choice(values)}, "
                    f"{self.rng.choice(SAVERS)!r})" for _ in range(2))  # fmt: skip
        return f"w.traced(lambda a, b: ({one}, {two}) and None, {first}, {second})"

    def anything(self) -> str:
        """Any function of anything."""
        name = self.rng.choice(CALLS)
        args = [self.value() for _ in range(self.rng.choice((0, 1, 2, 2, 3, 3, 4, 5, 6)))]
        if args and self.rng.random() < 0.7:
            args[0] = self.expr()
        return f"{self.fresh('e')} = shadow.{name}({', '.join(args)})"

    def method(self) -> str:
        name = self.tensor() if self.rng.random() < 0.7 else self.expr()
        arg, other = self.value(), self.value()
        e = self.fresh("e")
        return self.rng.choice(
            [
                f"{name}[{arg}]",
                f"{name}[{arg}:{other}]",
                f"{name}[:] = {arg}",
                f"{name} += {arg}",
                f"{name} *= {arg}",
                f"{name} /= {arg}",
                f"{name}[{arg}] = {other}",
                f"{name}[{self.size()}][0] = {arg}",
                f"{name}.assign({arg}, {other})",
                f"{name}.slice({arg}, {other})",
                f"{name}.mem_size({arg})",
                f"{name}.size({arg})",
                f"{name}.resize({arg})",
                f"shadow.free_space({name})",
                f"{e} = {name}[{self.size()}:{self.size()}]",
                f"{e} = {name}[{self.size()}]",
                f"{e} = {name}.T",
                f"{e} = {name}.flat_to_2d()",
                f"{e} = {name}.flat_to_1d()",
                f"{e} = {name}.view({arg}, {other}, {self.value()})",
                f"{e} = {name} + {arg}",
                f"{e} = {arg} * {name}",
                f"{e} = {name} ** {arg}",
                f"{e} = -{name}",
                f"{e} = shadow.Tensor({arg}, {other})",
                f"{e} = shadow.Tensor({name}, {arg}, {other})",
                f"{e} = shadow.TBlob({name}).get_with_shape({arg}, {other})",
                f"{e} = shadow.TBlob({name}).flat_to_3d({arg})",
                f"{e} = shadow.TBlob({name}).get({arg})",
                f"{e} = w.gradient({self.expr()}, {self.expr()}, {name})",
                f"{e} = shadow.Random('cpu', {arg}).{self.draw()}({other}, {self.value()})",
            ]
        )

    def draw(self) -> str:
        return self.rng.choice(
            [n for n in dir(shadow.Random) if not n.startswith("_") and n != "state"]
        )

    def look(self) -> str:
        name = self.expr()
        return self.rng.choice(
            [
                f"{name}.tree()", f"repr({name})", f"{name}.loop()", f"{name}.plan()",
                f"shadow.make_plan({name}).eval({self.size()}, {self.size()})",
                f"shadow.make_plan({name}).reval({self.value()}, {self.size()})",
                f"{self.tensor()}.explain({name}, {self.value()}, {self.value()})",
            ]
        )  # fmt: skip


def _axis(g: Generator, name: str) -> str:
    rank = g.names[name].ndim
    return str(g.rng.randint(-rank, rank - 1)) if rank else "0"


def _slice_bounds(g: Generator, name: str) -> Iterator[str]:
    shape = g.names[name].shape
    yield name
    yield str(tuple(g.rng.choice([None, 0, 1, -2, 2, n]) for n in shape))
    yield str(tuple(g.rng.choice([None, -1, n, 2, n - 1]) for n in shape))
    if g.rng.random() < 0.5:
        yield str(tuple(g.rng.choice([None, 1, 2, -1, -2]) for _ in shape))


def _permutation(g: Generator, name: str) -> tuple[str, str]:
    axes = list(range(g.names[name].ndim))
    g.rng.shuffle(axes)
    return name, str(tuple(axes))


def _pair(g: Generator, name: str) -> tuple[str, str]:
    e = g.names[name]
    fit = [n for n in g.every(Expr) if g.names[n].ndim == e.ndim and g.names[n].dtype is e.dtype]
    return name, g.rng.choice(fit)


def _index(g: Generator, name: str) -> str:
    return f"shadow.tcast('{g.rng.choice(['int32', 'int64', 'uint8', 'int8'])}', {name})"


def _shape_of(g: Generator, name: str) -> str:
    return str(g.names[name].shape)


Rule = Callable[[Generator, str], Any]
CHAINS: dict[str, Rule] = {
    "shadow.flip": lambda g, n: (n, _axis(g, n)),
    "shadow.transpose": _permutation,
    "shadow.swapaxis": lambda g, n: (n, _axis(g, n), _axis(g, n)),
    "shadow.slice_": _slice_bounds,
    "shadow.slice_ex": _slice_bounds,
    "shadow.slice": lambda g, n: (n, g.size(0, 2), g.size(1, 4), _axis(g, n)),
    "shadow.concat": lambda g, n: (*_pair(g, n), _axis(g, n)),
    "shadow.reduce": lambda g, n: (n, g.rng.choice(["'sum'", "'max'", "'min'"]), _axis(g, n)),
    "shadow.reduce_keepdim": lambda g, n: ("'sum'", n, _axis(g, n), str(g.rng.random() < 0.3)),
    "shadow.arg_reduce": lambda g, n: (n, g.rng.choice(["'max'", "'min'"]), _axis(g, n)),
    "shadow.sum_rows": lambda g, n: (n,),
    "shadow.sumall_except_dim": lambda g, n: (n, _axis(g, n)),
    "shadow.broadcast_to": lambda g, n: (n, _shape_of(g, g.expr())),
    "shadow.broadcast": lambda g, n: (n, _shape_of(g, g.expr()), g.size(-1, 3)),
    "shadow.broadcast_with_axis": lambda g, n: (n, _axis(g, n), g.size(0, 4)),
    "shadow.repmat": lambda g, n: (n, g.size(0, 4)),
    "shadow.reshape": lambda g, n: (n, g.rng.choice(["(-1,)", "(1, -1)", "(-1, 1)", "(2, -1)"])),
    "shadow.pad": lambda g, n: (n, g.size(-1, 3), g.size(0, 2)),
    "shadow.crop": lambda g, n: (n, g.size(1, 4)),
    "shadow.pool": lambda g, n: ("'max'", n, g.size(1, 3), g.size(1, 3), g.size(0, 1)),
    "shadow.chpool": lambda g, n: ("'sum'", n, g.size(1, 4)),
    "shadow.upsampling_nearest": lambda g, n: (n, g.size(0, 3)),
    "shadow.unpack_patch2col": lambda g, n: (n, g.size(1, 3), g.size(1, 2), g.size(1, 2)),
    "shadow.take": lambda g, n: (_index(g, n), g.expr()),
    "shadow.take_grad": lambda g, n: (_index(g, n), g.expr(), g.size(0, 5)),
    "shadow.pick": lambda g, n: (n, _index(g, g.expr())),
    "shadow.mat_fill_row_element": lambda g, n: (n, g.expr(), _index(g, g.expr())),
    "shadow.one_hot": lambda g, n: (_index(g, n), g.size(0, 5)),
    "shadow.mask": lambda g, n: (n, g.expr()),
    "shadow.tcast": lambda g, n: (repr(g.rng.choice(DTYPES)), n),
    "shadow.implicit_dot": _pair,
    "shadow.dot": _pair,
    "shadow.batch_dot": _pair,
    "shadow.complex_mul_cc": _pair,
    "shadow.complex_div_cr": _pair,
    "shadow.conj": lambda g, n: (n,),
    "shadow.iota": lambda g, n: (_shape_of(g, n), _axis(g, n)),
    "shadow.mirror": lambda g, n: (n,),
    "shadow.range": lambda g, n: (g.size(), g.size(), g.size(), g.size(1, 3)),
}
