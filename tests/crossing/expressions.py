"""Expressions of random programs: functions of operators, in text that `nd` and `sym` both take.

A pool holds names with a shape and a dtype; `f` stands before each function's name.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

UNARY = """
    abs negative sign round rint fix floor ceil trunc square sin cos tanh arctan sigmoid relu
    softsign erf cbrt logical_not degrees radians arcsinh hard_sigmoid zeros_like ones_like
    BlockGrad identity softmax log_softmax softmin Flatten shape_array size_array exp expm1
    sqrt rsqrt reciprocal log log1p log2 log10 gamma gammaln rcbrt tan sinh cosh arcsin arccos
    arctanh arccosh erfinv make_loss MakeLoss SoftmaxActivation mish
""".split()
BINARY = """
    add sub mul div mod power maximum minimum hypot equal not_equal greater greater_equal lesser
    lesser_equal logical_and logical_or logical_xor
""".split()
REDUCTIONS = "sum mean prod max min nansum nanprod sum_axis max_axis min_axis".split()
ACTIVATIONS = "relu sigmoid tanh softrelu softsign".split()
DTYPES = ["float32"] * 12 + ["float64"] * 3 + "int32 int32 float16 uint8 int8 int64".split()
SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 8)
LARGE = (
    (17,),
    (33,),
    (100,),
    (4099,),
    (16, 33),
    (65, 7),
    (1, 257),
    (257, 1),
    (3, 17, 19),
    (2, 3, 16, 17),
)


class Pool:
    """What expressions are made of: names, and what an array of each is like."""

    def __init__(self, rng: random.Random, names: Mapping[str, Any]) -> None:
        self.rng, self.names = rng, names

    def every(self, fits: Callable[[Any], bool] = lambda _: True) -> list[str]:
        dense = ((n, v) for n, v in self.names.items() if getattr(v, "stype", "") == "default")
        return [n for n, v in dense if fits(v)]

    def some(self, fits: Callable[[Any], bool] = lambda _: True) -> str:
        """A name, of those that fit where there is one; the latest more often."""
        found = self.every(fits) or self.every()
        return self.rng.choice(found[-4:] if self.rng.random() < 0.6 else found)

    def like(self, name: str) -> str:
        """A name of the same shape and dtype."""
        x = self.names[name]
        return self.some(lambda v: (v.shape, v.dtype) == (x.shape, x.dtype))

    def wide(self, name: str) -> str:
        """A name that broadcasts against another."""
        x = self.names[name]
        return self.some(lambda v: v.dtype == x.dtype and broadcasts(v.shape, x.shape))

    def of(self, rank: int) -> str:
        return self.some(lambda v: len(v.shape) == rank)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.names[name].shape)

    def axis(self, name: str, over: float = 0.03) -> int:
        rank = len(self.names[name].shape) or 1
        if self.rng.random() < over:
            return self.rng.choice((rank, -rank - 1))
        return self.rng.randrange(-rank, rank)

    def number(self) -> str:
        return self.rng.choice("0 1 2 -1 3 0.5 -2 1.5 -0.5 7".split())


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether arrays of two shapes have a common one."""
    return len(a) == len(b) and all(m == n or 1 in (m, n) for m, n in zip(a, b, strict=True))


def unary(p: Pool, f: str) -> str:
    return f"{f}.{p.rng.choice(UNARY)}({p.some()})"


def binary(p: Pool, f: str) -> str:
    x = p.some()
    return f"{f}.broadcast_{p.rng.choice(BINARY)}({x}, {p.wide(x)})"


def elementwise(p: Pool, f: str) -> str:
    x = p.some()
    return f"{f}.elemwise_{p.rng.choice('add sub mul div'.split())}({x}, {p.like(x)})"


def reduction(p: Pool, f: str) -> str:
    x = p.some()
    axis: Any = p.axis(x)
    if p.rng.random() < 0.3:
        axis = tuple(p.axis(x) for _ in range(p.rng.randrange(3)))
    more = "".join(f", {k}=True" for k in ("keepdims", "exclude") if p.rng.random() < 0.25)
    given = f", axis={axis}" if p.rng.random() < 0.85 else ""
    return f"{f}.{p.rng.choice(REDUCTIONS)}({x}{given}{more})"


def norm(p: Pool, f: str) -> str:
    x = p.some()
    return f"{f}.norm({x}, ord={p.rng.choice((1, 2))}, axis={p.axis(x)})"


def arg(p: Pool, f: str) -> str:
    x = p.some()
    which = p.rng.choice(["argmax", "argmin"])
    return f"{f}.{which}({x}, axis={p.axis(x)}, keepdims={p.rng.random() < 0.3})"


def ordered(p: Pool, f: str) -> str:
    x = p.some()
    k, axis, up = p.rng.randint(0, 3), p.axis(x), p.rng.random() < 0.5
    kind = p.rng.choice(["value", "indices", "mask"])
    return p.rng.choice([
        f"{f}.sort({x}, axis={axis}, is_ascend={up})",
        f"{f}.topk({x}, axis={axis}, k={k}, ret_typ={kind!r}, is_ascend={up})",
        f"{f}.sort({f}.topk({x}, axis={axis}, k=1, ret_typ='value'), axis={axis})",
    ])  # fmt: skip


def reshape(p: Pool, f: str) -> str:
    x = p.some()
    shape = list(p.shape(x)) or [1]
    k = p.rng.randrange(len(shape))
    form = p.rng.randrange(8)
    if form == 0:
        shape[k] = -1
    elif form == 1:
        shape[k] = 0
    elif form == 2:
        shape[k:] = [-2]
    elif form == 3 and k + 1 < len(shape):
        shape[k : k + 2] = [-3]
    elif form == 4:
        shape[k : k + 1] = [-4, 1, -1]
    elif form == 5:
        shape = [-1]
    elif form == 6:
        shape = [-1, p.rng.choice((1, 2, 3))]
    back = ", reverse=True" if p.rng.random() < 0.15 else ""
    return f"{f}.reshape({x}, shape={tuple(shape)}{back})"


def transpose(p: Pool, f: str) -> str:
    x = p.some()
    axes = list(range(len(p.shape(x))))
    p.rng.shuffle(axes)
    a, b = p.axis(x), p.axis(x)
    return p.rng.choice([
        f"{f}.transpose({x}, axes={tuple(axes)})",
        f"{f}.transpose({x})",
        f"{f}.SwapAxis({x}, dim1={a}, dim2={b})",
        f"{f}.flip({x}, axis={abs(a)})",
        f"{f}.expand_dims({x}, axis={a})",
        f"{f}.squeeze({x})",
        f"{f}.squeeze({x}, axis={a})",
        f"{f}.moveaxis({x}, {a}, {b})" if f == "nd" else f"{f}.flip({x}, axis={abs(b)})",
    ])  # fmt: skip


def repeated(p: Pool, f: str) -> str:
    x = p.some()
    reps = tuple(p.rng.randint(1, 2) for _ in range(p.rng.randint(1, 3)))
    sizes = tuple(p.rng.choice((n, 0, 3)) if n == 1 else p.rng.choice((n, 0)) for n in p.shape(x))
    return p.rng.choice([
        f"{f}.tile({x}, reps={reps})",
        f"{f}.repeat({x}, repeats={p.rng.randint(1, 3)}, axis={p.axis(x)})",
        f"{f}.repeat({x}, repeats=2)",
        f"{f}.broadcast_to({x}, shape={sizes})",
        f"{f}.broadcast_like({x}, {p.wide(x)})",
        f"{f}.broadcast_axis({x}, axis={p.axis(x)}, size=2)",
    ])  # fmt: skip


def joined(p: Pool, f: str) -> str:
    x = p.some()
    y, axis = p.like(x), p.axis(x)
    return p.rng.choice([
        f"{f}.concat({x}, {y}, dim={axis})",
        f"{f}.stack({x}, {y}, axis={axis})",
        f"{f}.add_n({x}, {y}, {p.like(x)})",
        f"{f}.where({p.like(x)}, {x}, {y})",
        f"{f}.where({p.some(lambda v: v.shape == p.names[x].shape)}, {x}, {y})",
        f"{f}.concat({x}, {x}, {y}, dim={axis})",
    ])  # fmt: skip


def bound(p: Pool) -> int | None:
    return p.rng.choice([None, 0, 1, 2, -1, -2, 3])


def sliced(p: Pool, f: str) -> str:
    x = p.some()
    rank = p.rng.randint(1, max(1, len(p.shape(x))))
    begin, end = (tuple(bound(p) for _ in range(rank)) for _ in range(2))
    step = tuple(p.rng.choice([1, 1, 2, -1]) for _ in range(rank))
    axis = p.axis(x)
    n = (p.shape(x) or (1,))[axis] if abs(axis) < len(p.shape(x)) else 1
    more = f", step={step}" if p.rng.random() < 0.3 else ""
    first, last = p.rng.randrange(n or 1), p.rng.randint(1, n or 1)
    return p.rng.choice([
        f"{f}.slice({x}, begin={begin}, end={end}{more})",
        f"{f}.slice_axis({x}, axis={axis}, begin={first}, end={last})",
        f"{f}.slice_axis({x}, axis={axis}, begin=0, end=None)",
        f"{f}.slice_like({x}, {p.some(lambda v: len(v.shape) == len(p.shape(x)))})",
        f"{f}.split({x}, num_outputs={n}, axis={axis}, squeeze_axis={p.rng.random() < 0.5})[0]",
    ])  # fmt: skip


def indexed(p: Pool, f: str) -> str:
    x, i = p.some(), p.some()
    mode = p.rng.choice(["clip", "wrap"])
    return p.rng.choice([
        f"{f}.take({x}, {i}, axis={p.axis(x)}, mode={mode!r})",
        f"{f}.one_hot({i}, depth={p.rng.randint(1, 5)})",
        f"{f}.pick({x}, {f}.argmax({x}, axis=-1), axis=-1, keepdims={p.rng.random() < 0.5})",
        f"{f}.Embedding({i}, {p.of(2)}, input_dim=4, output_dim=3)",
        f"{f}.gather_nd({x}, {f}.zeros_like({f}.slice_axis({p.of(2)}, axis=0, begin=0, end=1)))",
        f"{f}.batch_take({p.of(2)}, {f}.argmax({p.of(2)}, axis=1))",
        f"{f}.diag({x}, k={p.rng.randint(-1, 1)})",
        f"{f}.SequenceReverse({x})",
        f"{f}.SequenceLast({x})",
        f"{f}.SequenceMask({x}, {p.of(1)}, use_sequence_length=True, value={p.number()})",
    ])  # fmt: skip


def numbers(p: Pool, f: str) -> str:
    x = p.some()
    low, high = sorted((float(p.number()), float(p.number())))
    return p.rng.choice([
        f"{f}.clip({x}, a_min={low}, a_max={high})",
        f"{f}.smooth_l1({x}, scalar={p.rng.choice((0.5, 1.0, 2.0))})",
        f"{f}.cast({x}, dtype={p.rng.choice(DTYPES)!r})",
        f"{f}.cast({x}, dtype={p.rng.choice(DTYPES)!r})",
        f"{f}.cumsum({x}, axis={p.axis(x)})" if f == "nd" else f"{f}.abs({x})",
        f"{f}.add_n({x})",
    ])  # fmt: skip


def product(p: Pool, f: str) -> str:
    x = p.of(2)
    a, b = (p.rng.random() < 0.4 for _ in range(2))
    inner = p.shape(x)[0 if a else -1] if p.shape(x) else 1
    y = p.some(lambda v: len(v.shape) == 2 and v.shape[1 if b else 0] == inner)
    z = p.of(3)
    return p.rng.choice([
        f"{f}.dot({x}, {y}, transpose_a={a}, transpose_b={b})",
        f"{f}.dot({x}, {x}, transpose_b=True)",
        f"{f}.batch_dot({z}, {z}, transpose_b=True)",
        f"{f}.linalg.gemm2({x}, {y}, transpose_a={a}, transpose_b={b}, alpha=0.5)",
        f"{f}.linalg.syrk({x}, transpose={a})",
        f"{f}.khatri_rao({x}, {p.some(lambda v: v.shape[1:] == p.shape(x)[1:])})",
        f"{f}.FullyConnected({p.some()}, {x}, num_hidden={(p.shape(x) or (1,))[0]}, no_bias=True, "
        f"flatten={a})",
    ])  # fmt: skip


def network(p: Pool, f: str) -> str:
    x, c = p.some(lambda v: len(v.shape) >= 2), p.of(4)
    kernel, stride, pad = p.rng.randint(1, 3), p.rng.randint(1, 2), p.rng.randint(0, 1)
    size = f"kernel=({kernel}, {kernel}), stride=({stride}, {stride}), pad=({pad}, {pad})"
    ways = p.rng.choice(["max", "avg", "sum"]), p.rng.choice(["valid", "full"])
    return p.rng.choice([
        f"{f}.Activation({p.some()}, act_type={p.rng.choice(ACTIVATIONS)!r})",
        f"{f}.LeakyReLU({p.some()}, act_type={p.rng.choice(['leaky', 'elu', 'gelu'])!r})",
        f"{f}.Pooling({c}, {size}, pool_type={ways[0]!r}, pooling_convention={ways[1]!r})",
        f"{f}.Pooling({c}, global_pool=True, kernel=(1, 1), pool_type={ways[0]!r})",
        f"{f}.Convolution({c}, {p.of(4)}, kernel=(1, 1), num_filter=2, no_bias=True)",
        f"{f}.UpSampling({c}, scale=2, sample_type='nearest')",
        f"{f}.Pad({c}, mode={p.rng.choice(['edge', 'constant'])!r}, pad_width=(0,0,0,0,1,1,0,1))",
        f"{f}.L2Normalization({x}, mode={p.rng.choice(['instance', 'channel', 'spatial'])!r})",
        f"{f}.LRN({c}, nsize=3)",
        f"{f}.softmax({x}, axis={p.axis(x)}, temperature=2.0)",
        f"{f}.log_softmax({x}, axis={p.axis(x)})",
        f"{f}.Dropout({x}, p=0.0)",
        f"{f}.SoftmaxOutput({x}, {f}.argmax({x}, axis=1))",
        f"{f}.LinearRegressionOutput({x}, {p.like(x)})",
        f"{f}.MAERegressionOutput({x}, {p.like(x)})",
        f"{f}.depth_to_space({c}, block_size=2)",
        f"{f}.space_to_depth({c}, block_size=2)",
        f"{f}.InstanceNorm({x}, {p.of(1)}, {p.of(1)})",
        f"{f}.LayerNorm({x}, {p.of(1)}, {p.of(1)}, axis={p.axis(x)})",
    ])  # fmt: skip


WEIGHED = (
    [unary] * 5 + [binary] * 6 + [elementwise] * 2 + [reduction] * 4 + [norm, arg, ordered]
    + [reshape] * 3 + [transpose] * 3 + [repeated] * 2 + [joined] * 3 + [sliced] * 3
    + [indexed] * 2 + [numbers] * 2 + [product] * 2 + [network] * 3
)  # fmt: skip
