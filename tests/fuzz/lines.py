"""More lines of random programs: statements that come again, traced functions, streams, owners.

Each function gives a line for a `Generator`, as its own methods do. What runs once goes the whole
way through checks and the compiler; what comes again goes through launches and native code, so
`again` and `views` do things several times over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.generate import Generator

BODIES = """
    a[:] = b + x | a += b * x | a[:] = b | b[:] = a - b | a *= 2 | a[:] = x | b -= a | a[:] = -b
    a[1:] = b[:-1] | a[::-1] = b | a[:] = shadow.flip(b, 0) | a[:] = shadow.fn.exp(b) * x
    a[:] = b + shadow.broadcast_to(shadow.reduce_keepdim('max', b, 0), b.shape) | f(a, b) | b[0] = x
    a[:] = r.uniform(a.shape, a.dtype) | a[:] = c + b | c[:] = a | a[:] = shadow.fn.clip(b, -x, x)
    a[:] = b * (1 - x) | a[:] = b ** x | a.assign(b, 'minusto') | shadow.softmax(a, b)
""".replace("\n", "|").split("|")
WRONG = """
    raise ValueError('argument of its own') | return a | if x > 1: a[:] = b | a[:] = b.numpy()
    a.resize((3,)) | x += undefined | a[:] = [1, 2] | shadow.free_space(c) | print(a.numpy())
    a[:] = int(x) | for k in range(x): a += k | a[7] = x | del a | c[:] = object()
    a /= shadow.dot(a, b)
""".replace("\n", "|").split("|")
GOOD = [line.strip() for line in BODIES if line.strip()]
BAD = [line.strip() for line in WRONG if line.strip()]


def again(g: Generator) -> str:
    """A statement that comes several times, its expression made anew each time."""
    dest = g.tensor()
    a, b = g.like(dest), g.like(dest)
    value = g.rng.choice(
        [
            f"{dest} + {a}", f"{dest} * {a} - {b}", f"-{dest}", f"shadow.fn.abs({dest}) + {b}",
            f"shadow.flip({dest}, 0) - {a}", f"{dest}.T.T + {a}", f"{a}", f"({dest} < {a}) + {b}",
            f"shadow.F('maximum')({dest}, {a})", f"shadow.fn.where({dest}, {a}, {b})",
            f"{dest} + shadow.broadcast_to(shadow.reduce_keepdim('sum', {dest}, 0), {dest}.shape)",
            f"shadow.tcast({dest}.dtype, {dest} * 2)", f"np.float32(2) * {dest}",
            f"2 + {dest} * True",
        ]
    )  # fmt: skip
    saver, count = g.rng.choice(["saveto", "plusto", "minusto", "multo"]), g.rng.randint(2, 6)
    return f"w.again({dest}, {saver!r}, lambda: {value}, {count})"


def views(g: Generator) -> str:
    """Rows and slices of a tensor, with any step, as tensors to be used later."""
    name, made = g.tensor(), g.fresh("t")
    bounds = [g.rng.choice(["", g.size(-4, 6)]) for _ in range(2)]
    step = g.rng.choice(["", "", ":", ":1", ":-1", ":2", ":-2", ":3"])
    key = g.rng.choice([":".join(bounds) + step, g.size(-3, 4)])
    times = g.rng.randint(1, 3)
    return f"{made} = w.viewed({name}, lambda t: t[{key}], {times})"


def moved(g: Generator) -> str:
    """A statement between slices of tensors, which may lie over each other."""
    name = g.tensor()
    other = g.rng.choice([name, *g.every_tensor_like(name)])
    cuts = [("1:", ":-1"), (":-1", "1:"), ("::-1", ":"), (":", "::-1"), ("2:", ":-2"),
            ("::2", "::2"), ("1:3", "0:2"), ("0", "1"), ("-1", "0"), ("1:", "1:")]  # fmt: skip
    left, right = g.rng.choice(cuts)
    sign = g.rng.choice(["=", "=", "+=", "-=", "*="])
    more = g.rng.choice(["", "", f" + {g.like(name)}", " * 2", " - 1"])
    return f"for _ in range({g.rng.randint(1, 4)}): {name}[{left}] {sign} {other}[{right}]{more}"


def jitted(g: Generator) -> str:
    """A function of several lines by `jit`, called several times; some of them are wrong."""
    lines = [g.rng.choice(GOOD) for _ in range(g.rng.randint(1, 4))]
    if g.rng.random() < 0.3:
        lines.insert(g.rng.randrange(len(lines) + 1), g.rng.choice(BAD))
    a, b, c = (g.rng.choice([n, *g.every_tensor_like(n)]) for n in [g.tensor()] * 3)
    if g.rng.random() < 0.15:
        b = g.value()
    x = g.rng.choice(["0.5", "2", "-1", "True", "np.float32(3)", g.value()])
    static = g.rng.choice(["()", "()", "('x',)", "['a']", "None", "'x'", "('y',)"])
    return f"w.jitted({lines!r}, {a}, {b}, {c}, {x}, {static})"


def mixed(g: Generator) -> str:
    """An operation on any two expressions, or an expression and a number of any size."""
    a, b = g.expr(), g.expr()
    number = g.rng.choice("300 -1 2**31 -2**63 2**64 10**30 0.5 -0.0 1e40".split())
    sign = g.rng.choice("+ - * / ** < <= > >=".split())
    left, right = g.rng.choice([(a, b), (a, number), (number, a)])
    call = g.rng.choice(["eq", "ne", "maximum", "hypot", "mod", "lt"])
    return f"{g.fresh('e')} = " + g.rng.choice(
        [f"{left} {sign} {right}", f"shadow.fn.{call}({left}, {right})"]
    )


def stream(g: Generator) -> str:
    """A tensor to bytes and back, whole or damaged."""
    return f"w.through({g.tensor()}, {g.rng.randrange(1 << 30)}, {g.rng.choice([0, 0, 1, 2])})"


def owner(g: Generator) -> str:
    """Tensors whose owner is let go, memory that is given back, copies."""
    name, made = g.tensor(), g.fresh("t")
    shape = g.shape()
    return g.rng.choice(
        [
            f"{made} = w.orphan({shape}, {g.dtype()!r})",
            f"{made} = shadow.alloc_space({shape}, {g.dtype()!r}); {made}[:] = 1",
            f"{made} = shadow.TensorContainer({shape}, {g.dtype()!r}, 1)[:]",
            f"{made} = w.rows_of_freed({shape}, {g.dtype()!r})",
            f"{made} = shadow.Tensor(bytearray({g.size(0, 40)}))",
            f"{made} = shadow.Tensor(np.zeros({shape}, 'float32')[::-1])",
            f"{made} = w.copied({name})",
            f"{g.fresh('e')} = w.copied({g.expr()})",
            f"shadow.copy({name}, {g.expr()})",
        ]
    )


def drawn(g: Generator) -> str:
    """Random numbers into a tensor, and as expressions."""
    name = g.tensor()
    source = f"shadow.Random('cpu', {g.rng.randrange(5)})"
    low, high = g.rng.choice([("0", "1"), ("-1", "2.5"), ("3", "3"), ("2.0", "0.5"), ("0", "inf")])
    low, high = (f"float('{x}')" for x in (low, high))
    kind = g.rng.choice(["uniform", "gaussian", "gamma", "exponential", "poisson"])
    two = kind in ("uniform", "gaussian", "gamma")
    arguments = f"{low}, {high}" if two else low
    return g.rng.choice(
        [
            f"{source}.sample_{kind}({name}, {arguments})",
            f"{source}.get_rand_int({name})",
            f"{g.fresh('e')} = {source}.uniform({name}.shape, {name}.dtype)",
            f"{g.fresh('e')} = {source}.gaussian({name}.shape)",
            f"{name}[:] = {source}.uniform({name}.shape, {name}.dtype) * 2",
            f"[s.sample_uniform({name}) for s in {source}.split({g.size(0, 3)})]",
        ]
    )


def at_once(g: Generator) -> str:
    """A statement on two threads at the same time."""
    name = g.tensor()
    return f"w.at_once({name}, lambda a, b: b.assign(a + {g.like(name)}), {g.rng.randint(2, 20)})"


MORE = (again, again, again, views, views, moved, moved, jitted, jitted, mixed, mixed, stream)
RARE = (owner, owner, drawn, at_once)
