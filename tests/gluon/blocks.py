"""Random networks as nested lists, which Hypothesis draws and shrinks, and the blocks they mean.

A layer is `(kind, options)`; the strategies say what may stand where, `BUILT` what a kind becomes.
Layers keep any size of an image at 1 or more, and need not know how many channels come.
"""

from __future__ import annotations

from hypothesis import strategies as st

import gnomon as mx
from gnomon.gluon import HybridBlock, nn, rnn
from gnomon.gluon.contrib.nn import HybridConcurrent, Identity, PixelShuffle2D

SMALL, FEW = st.integers(1, 3), st.integers(2, 5)
FLAG = st.booleans()
TIMES = 3  # length of all sequences


class Residual(HybridBlock):
    """The input and, with a learned factor, what a block makes of it, in one channel or in all."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.inner = inner
            self.factor = self.params.get("factor", shape=(1,), init="ones")
            self.shift = self.params.get_constant("shift", mx.nd.array([0.25]))

    def hybrid_forward(self, F, x, factor, shift):
        y = F.broadcast_mul(F.broadcast_add(self.inner(x), shift), factor)
        return F.broadcast_add(x, y)


class Twice(HybridBlock):
    """A block applied to what it gave."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner

    def hybrid_forward(self, F, x):
        return self.inner(self.inner(x)) + x


class Shared(HybridBlock):
    """Two layers with the same parameters, between them a third one."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.into = nn.Dense(units, flatten=False)
            self.first = nn.Dense(units, in_units=units, flatten=False)
            self.middle = nn.LayerNorm()
            self.second = nn.Dense(units, flatten=False, params=self.first.params)

    def hybrid_forward(self, F, x):
        return self.second(F.tanh(self.middle(self.first(self.into(x)))))


class Attention(HybridBlock):
    """Self-attention of some heads over sequences (n, time, channels)."""

    def __init__(self, heads, size, causal, **kwargs):
        super().__init__(**kwargs)
        self.heads, self.size, self.causal = heads, size, causal
        with self.name_scope():
            self.inner = nn.Dense(3 * heads * size, flatten=False, use_bias=False)
            self.out = nn.Dense(heads * size, flatten=False)

    def hybrid_forward(self, F, x):
        parts = F.split(self.inner(x), num_outputs=3, axis=2)
        query, key, value = (self.apart(F, part) for part in parts)
        score = F.batch_dot(query, key, transpose_b=True) * self.size**-0.5
        if self.causal:
            at = F.contrib.arange_like(score, axis=1)
            later = F.broadcast_lesser(F.reshape(at, (-1, 1)), F.reshape(at, (1, -1)))
            score = F.broadcast_sub(score, F.expand_dims(later, 0) * 1e3)
        found = F.batch_dot(F.softmax(score, axis=-1), value)
        found = F.reshape(found, shape=(-4, -1, self.heads, 0, 0))
        return self.out(F.reshape(F.transpose(found, (0, 2, 1, 3)), shape=(0, 0, -3)))

    def apart(self, F, x):
        x = F.reshape(x, shape=(0, 0, -4, self.heads, -1))
        return F.reshape(F.transpose(x, (0, 2, 1, 3)), shape=(-3, 0, 0))


class Unrolled(HybridBlock):
    """A cell along sequences (n, time, channels)."""

    def __init__(self, cell, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.cell = cell

    def hybrid_forward(self, F, x):
        self.cell.reset()
        return self.cell.unroll(TIMES, x, layout="NTC", merge_outputs=True)[0]


class Branches(HybridBlock):
    """Networks, one for each input, their outputs joined and as they are."""

    def __init__(self, drawn, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.parts = [branch(*part) for part in drawn]
            for part in self.parts:
                self.register_child(part)
            self.last = nn.Dense(2)

    def hybrid_forward(self, F, *inputs):
        found = [part(x) for part, x in zip(self.parts, inputs, strict=True)]
        joined = self.last(F.concat(*found, dim=1))
        return joined, [F.sum(x, axis=1) * 0.5 for x in found]


# what is drawn ------------------------------------------------------------------------------

ANYWHERE = st.one_of(
    st.tuples(st.just("activation"), st.sampled_from(["relu", "tanh", "softrelu", "softsign"])),
    st.tuples(st.just("unary"), st.sampled_from(["Swish", "GELU", "SELU", "ELU", "LeakyReLU"])),
    st.tuples(st.just("lambda"), st.sampled_from(["square", "log_softmax", "clip", "where"])),
)
NORM = st.tuples(st.just("layernorm"), st.tuples(FLAG, FLAG))
SAME = st.one_of(
    ANYWHERE,
    st.tuples(st.just("batchnorm"), st.tuples(FLAG, FLAG, FLAG)),
    st.tuples(st.just("instancenorm"), st.booleans()),
    st.tuples(st.just("layernorm over channels"), FLAG),
    st.tuples(st.just("prelu"), st.just(())),
    st.tuples(st.just("conv"), st.tuples(FEW, st.sampled_from([1, 3]), st.just(1), FLAG)),
    st.tuples(st.just("separable"), st.sampled_from([1, 2, 4])),
    st.tuples(st.just("groupnorm"), st.sampled_from([1, 2, 4])),
)
ONE = st.tuples(st.just("conv"), st.tuples(st.just(1), st.sampled_from([1, 3]), st.just(1), FLAG))
IMAGE = st.one_of(
    SAME,
    st.tuples(st.just("conv"), st.tuples(FEW, st.just(3), st.just(2), FLAG)),
    st.tuples(st.just("dilated"), FEW),
    st.tuples(st.just("transposed"), st.tuples(SMALL, st.sampled_from([1, 2]))),
    st.tuples(st.just("pool"), st.tuples(st.sampled_from(["Max", "Avg"]), FLAG, FLAG)),
    st.tuples(st.just("shuffled"), SMALL),
    st.tuples(st.just("beside"), st.lists(SAME, min_size=1, max_size=2)),
    st.tuples(st.just("residual"), ONE),
    st.tuples(st.just("twice"), st.tuples(st.just("unary"), st.sampled_from(["GELU", "Swish"]))),
)
CELLS = st.recursive(
    st.tuples(st.sampled_from(["RNNCell", "LSTMCell", "GRUCell"]), FEW),
    lambda inner: st.one_of(
        st.tuples(st.just("stack"), st.lists(inner, min_size=1, max_size=2)),
        st.tuples(st.just("both ways"), st.lists(inner, min_size=2, max_size=2)),
    ),
    max_leaves=3,
)
SEQUENCE = st.one_of(
    ANYWHERE,
    NORM,
    st.tuples(
        st.just("recurrent"), st.tuples(st.sampled_from(["RNN", "LSTM", "GRU"]), FEW, SMALL, FLAG)
    ),
    st.tuples(st.just("cell"), CELLS),
    st.tuples(st.just("attention"), st.tuples(SMALL, SMALL, FLAG)),
    st.tuples(st.just("dense"), st.tuples(FEW, FLAG, st.just(False))),
    st.tuples(st.just("shared"), FEW),
)
ROWS = st.recursive(
    st.one_of(
        ANYWHERE,
        NORM,
        st.tuples(st.just("batchnorm"), st.tuples(FLAG, FLAG, FLAG)),
        st.tuples(st.just("prelu"), st.just(())),
        st.tuples(st.just("dense"), st.tuples(FEW, FLAG, FLAG)),
        st.tuples(st.just("shared"), FEW),
        st.tuples(st.just("residual"), st.tuples(st.just("dense"), st.just((1, True, True)))),
        st.tuples(st.just("twice"), st.tuples(st.just("layernorm"), st.just((True, True)))),
    ),
    lambda inner: st.one_of(
        st.tuples(st.just("beside"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("chain"), st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=5,
)
BRANCH = st.one_of(
    st.tuples(st.just("image"), st.lists(IMAGE, min_size=1, max_size=4)),
    st.tuples(st.just("sequence"), st.lists(SEQUENCE, min_size=1, max_size=3)),
    st.tuples(st.just("tokens"), st.lists(SEQUENCE, min_size=1, max_size=3)),
    st.tuples(st.just("rows"), st.lists(ROWS, min_size=1, max_size=4)),
)
NETWORK = st.lists(BRANCH, min_size=1, max_size=3)

# what it becomes ----------------------------------------------------------------------------

FUNCTIONS = {
    "square": lambda F, x: F.square(x) * 0.25 + x,
    "log_softmax": lambda F, x: F.log_softmax(x) * 0.5,
    "clip": lambda F, x: F.clip(x, -1, 1.5),
    "where": lambda F, x: F.where(x > 0, F.sqrt(F.abs(x) + 1), F.sin(x)),
}


def chain(*layers):
    """Blocks one after the other."""
    net = nn.HybridSequential()
    with net.name_scope():
        net.add(*(layer() for layer in layers))
    return net


def beside(parts):
    """Blocks side by side, and what went in."""
    net = HybridConcurrent(axis=1)
    with net.name_scope():
        net.add(*(build(part) for part in parts), Identity())
    return net


def cell(kind, options):
    """A recurrent cell."""
    if kind == "stack":
        made = rnn.HybridSequentialRNNCell()
        with made.name_scope():
            for inner in options:
                made.add(cell(*inner))
        return made
    if kind == "both ways":
        return rnn.BidirectionalCell(*(cell(*inner) for inner in options))
    return getattr(rnn, kind)(options)


def pool(kind, whole, counted):
    """A window of 3 by 3, every second one or not."""
    more = {"count_include_pad": counted} if kind == "Avg" else {}
    return getattr(nn, f"{kind}Pool2D")(3, 2 if whole else 1, 1, ceil_mode=whole, **more)


BUILT = {
    "activation": nn.Activation,
    "unary": lambda name: getattr(nn, name)(*([0.2] if name == "LeakyReLU" else [])),
    "layernorm": lambda how: nn.LayerNorm(center=how[0], scale=how[1]),
    "layernorm over channels": lambda scale: nn.LayerNorm(axis=1, scale=scale),
    "lambda": lambda name: nn.HybridLambda(FUNCTIONS[name]),
    "batchnorm": lambda how: nn.BatchNorm(
        momentum=0.7, center=how[0], scale=how[1], use_global_stats=how[2] and how[0]
    ),
    "instancenorm": lambda scale: nn.InstanceNorm(scale=scale, epsilon=1e-2),
    "prelu": lambda _: nn.PReLU(),
    "conv": lambda how: nn.Conv2D(
        how[0], how[1], how[2], how[1] // 2, use_bias=how[3], activation="tanh" if how[3] else None
    ),
    "separable": lambda groups: chain(
        lambda: nn.Conv2D(4, 1), lambda: nn.Conv2D(8, 3, padding=1, groups=groups)
    ),
    "groupnorm": lambda groups: chain(lambda: nn.Conv2D(4, 1), lambda: nn.GroupNorm(groups)),
    "dilated": lambda channels: nn.Conv2D(channels, (3, 1), dilation=2, padding=(2, 0)),
    "transposed": lambda how: nn.Conv2DTranspose(how[0], 3, how[1], 1, how[1] - 1),
    "pool": lambda how: pool(*how),
    "shuffled": lambda channels: chain(
        lambda: nn.Conv2D(4 * channels, 1), lambda: PixelShuffle2D(2), lambda: nn.AvgPool2D(2)
    ),
    "beside": beside,
    "residual": lambda inner: Residual(build(inner)),
    "twice": lambda inner: Twice(build(inner)),
    "recurrent": lambda how: getattr(rnn, how[0])(
        how[1], min(how[2], 2), layout="NTC", bidirectional=how[3]
    ),
    "cell": lambda how: Unrolled(cell(*how)),
    "attention": lambda how: Attention(*how),
    "dense": lambda how: nn.Dense(how[0], use_bias=how[1], flatten=how[2]),
    "shared": Shared,
    "chain": lambda parts: chain(*((lambda p=part: build(p)) for part in parts)),
}


def build(layer):
    """The block of a drawn layer."""
    kind, options = layer
    return BUILT[kind](options)


ENDS = {
    "image": lambda: chain(nn.GlobalAvgPool2D, nn.Flatten),
    "sequence": lambda: nn.HybridLambda(lambda F, x: F.mean(x, axis=1)),
    "rows": Identity,
}
ENDS["tokens"] = ENDS["sequence"]


def branch(kind, layers):
    """A network from an input of some kind to rows."""
    net = nn.HybridSequential()
    with net.name_scope():
        if kind == "tokens":
            net.add(nn.Embedding(7, 4))
        net.add(*(build(layer) for layer in layers), ENDS[kind]())
    return net


def network(drawn):
    """The block of a drawn network."""
    return Branches(drawn, prefix="net_")


def batch(rng, drawn, count, side):
    """Inputs of a network, float64: `count` rows, images of one size or another."""
    shapes = {
        "image": (count, 2, side, side + 1),
        "sequence": (count, TIMES, 4),
        "rows": (count, 5),
    }
    return [
        rng.integers(0, 7, (count, TIMES)).astype(float)
        if kind == "tokens"
        else rng.standard_normal(shapes[kind])
        for kind, _ in drawn
    ]
