"""Small networks of every well-known kind, composed alike by the real library and by gnomon.

Every function takes the symbol namespace, `mx.sym`, and gives a symbol with fixed names. Sizes are
small; the kinds of layers and how they are joined are those of the papers.
"""

from __future__ import annotations

from typing import Any


def conv(sym: Any, x: Any, name: str, filters: int, kernel: int = 3, **more: Any) -> Any:
    """A convolution that keeps the size, unless told otherwise."""
    given = {"pad": (kernel // 2, kernel // 2), "kernel": (kernel, kernel), **more}
    return sym.Convolution(x, name=name, num_filter=filters, **given)


def relu(sym: Any, x: Any, name: str) -> Any:
    return sym.Activation(x, name=name, act_type="relu")


def normal(sym: Any, x: Any, name: str, **more: Any) -> Any:
    return sym.BatchNorm(x, name=name, fix_gamma=False, eps=1e-4, **more)


def norm_relu(sym: Any, x: Any, name: str) -> Any:
    return relu(sym, normal(sym, x, f"{name}_bn"), f"{name}_relu")


def unit(sym: Any, x: Any, name: str, filters: int, kernel: int = 3, **more: Any) -> Any:
    """Convolution, normalisation, activation."""
    more = {"no_bias": True, **more}
    return norm_relu(sym, conv(sym, x, f"{name}_conv", filters, kernel, **more), name)


def maximum(sym: Any, x: Any, name: str, **more: Any) -> Any:
    return sym.Pooling(
        x, name=name, pool_type="max", **{"kernel": (2, 2), "stride": (2, 2), **more}
    )


def head(sym: Any, x: Any, classes: int = 5) -> Any:
    """The mean of every channel, classified."""
    x = sym.Pooling(x, name="global", pool_type="avg", global_pool=True, kernel=(1, 1))
    x = sym.FullyConnected(sym.Flatten(x, name="flat"), name="fc", num_hidden=classes)
    return sym.SoftmaxOutput(x, name="softmax")


def alexnet(sym: Any) -> Any:
    """Large windows with strides, local response normalisation, overlapping pooling, groups."""
    x = conv(sym, sym.Variable("data"), "conv1", 8, 5, stride=(2, 2), pad=(1, 1))
    x = sym.LRN(relu(sym, x, "relu1"), name="lrn", alpha=1e-2, beta=0.75, knorm=2, nsize=5)
    x = maximum(sym, x, "pool1", kernel=(3, 3))
    x = relu(sym, conv(sym, x, "conv2", 12, 5, num_group=2), "relu2")
    x = maximum(sym, x, "pool2", kernel=(3, 3))
    x = sym.FullyConnected(sym.Flatten(x, name="flat"), name="fc1", num_hidden=16)
    x = sym.Dropout(relu(sym, x, "relu3"), name="drop", p=0.0)
    return sym.SoftmaxOutput(sym.FullyConnected(x, name="fc2", num_hidden=5), name="softmax")


def vgg(sym: Any) -> Any:
    """Blocks of two small convolutions and a pooling."""
    x = sym.Variable("data")
    for block, filters in enumerate((6, 10)):
        for k in range(2):
            x = relu(sym, conv(sym, x, f"conv{block}{k}", filters), f"relu{block}{k}")
        x = maximum(sym, x, f"pool{block}")
    x = sym.FullyConnected(sym.Flatten(x, name="flat"), name="fc1", num_hidden=16)
    x = sym.FullyConnected(relu(sym, x, "relu"), name="fc2", num_hidden=5)
    return sym.SoftmaxOutput(x, name="softmax")


def inception(sym: Any) -> Any:
    """Branches of different windows, joined by channels."""
    x = unit(sym, sym.Variable("data"), "stem", 6)
    for k in range(2):
        one = unit(sym, x, f"m{k}a", 4, 1)
        three = unit(sym, unit(sym, x, f"m{k}b1", 3, 1), f"m{k}b2", 5)
        two = unit(sym, unit(sym, x, f"m{k}c1", 2, 1), f"m{k}c2", 3, 5)
        mean = sym.Pooling(
            x, name=f"m{k}mean", pool_type="avg", kernel=(3, 3), stride=(1, 1), pad=(1, 1)
        )
        x = sym.Concat(one, three, two, unit(sym, mean, f"m{k}d", 3, 1), name=f"m{k}", dim=1)
    return head(sym, x)


def resnet_v1(sym: Any) -> Any:
    """Residual blocks, the activation after the sum."""
    x = unit(sym, sym.Variable("data"), "stem", 6)
    for k, (filters, stride) in enumerate(((6, 1), (10, 2))):
        y = unit(sym, x, f"b{k}1", filters, stride=(stride, stride))
        y = normal(sym, conv(sym, y, f"b{k}2_conv", filters, no_bias=True), f"b{k}2_bn")
        if stride > 1:
            x = conv(sym, x, f"b{k}_short", filters, 1, stride=(2, 2), no_bias=True)
            x = normal(sym, x, f"b{k}_short_bn")
        x = relu(sym, y + x, f"b{k}_relu")
    return head(sym, x)


def resnet_v2(sym: Any) -> Any:
    """Residual blocks, normalisation and activation before the convolutions."""
    x = sym.BatchNorm(sym.Variable("data"), name="first", fix_gamma=True, eps=2e-5)
    x = conv(sym, x, "stem", 6, no_bias=True)
    for k, (filters, stride) in enumerate(((6, 1), (10, 2))):
        before = norm_relu(sym, x, f"b{k}1")
        y = conv(sym, before, f"b{k}1_conv", filters, stride=(stride, stride), no_bias=True)
        y = conv(sym, norm_relu(sym, y, f"b{k}2"), f"b{k}2_conv", filters, no_bias=True)
        if stride > 1:
            x = conv(sym, before, f"b{k}_short", filters, 1, stride=(2, 2), no_bias=True)
        x = y + x
    return head(sym, norm_relu(sym, x, "last"))


def densenet(sym: Any) -> Any:
    """Every layer reads all layers before it."""
    x = conv(sym, sym.Variable("data"), "stem", 4, no_bias=True)
    for block in range(2):
        for k in range(3):
            new = conv(sym, norm_relu(sym, x, f"d{block}{k}"), f"d{block}{k}_conv", 3, no_bias=True)
            x = sym.Concat(x, new, name=f"d{block}{k}_join", dim=1)
        if not block:
            x = conv(sym, norm_relu(sym, x, "t"), "t_conv", 6, 1, no_bias=True)
            x = sym.Pooling(x, name="t_pool", pool_type="avg", kernel=(2, 2), stride=(2, 2))
    return head(sym, norm_relu(sym, x, "last"))


def mobilenet(sym: Any) -> Any:
    """Convolutions of one channel each, and across the channels; inverted residuals, relu6."""
    x = unit(sym, sym.Variable("data"), "stem", 6, stride=(2, 2))
    for k, filters in enumerate((6, 8)):
        wide = normal(sym, conv(sym, x, f"b{k}1_conv", 12, 1, no_bias=True), f"b{k}1_bn")
        wide = sym.clip(wide, a_min=0, a_max=6, name=f"b{k}1_relu6")
        deep = conv(sym, wide, f"b{k}2_conv", 12, num_group=12, no_bias=True)
        deep = sym.clip(normal(sym, deep, f"b{k}2_bn"), a_min=0, a_max=6, name=f"b{k}2_relu6")
        thin = normal(sym, conv(sym, deep, f"b{k}3_conv", filters, 1, no_bias=True), f"b{k}3_bn")
        x = thin + x if filters == 6 else thin
    return head(sym, x)


def detector(sym: Any) -> Any:
    """Classes and places predicted at two scales: several outputs, some behind BlockGrad."""
    x = unit(sym, sym.Variable("data"), "stem", 6)
    classes, places = [], []
    for k in range(2):
        x = unit(sym, x, f"s{k}", 8, stride=(2, 2))
        scores = conv(sym, x, f"s{k}_class", 6)
        boxes = conv(sym, x, f"s{k}_place", 8)
        scores = sym.transpose(scores, axes=(0, 2, 3, 1), name=f"s{k}_class_t")
        boxes = sym.transpose(boxes, axes=(0, 2, 3, 1), name=f"s{k}_place_t")
        classes.append(sym.Flatten(scores, name=f"s{k}_class_f"))
        places.append(sym.Flatten(boxes, name=f"s{k}_place_f"))
    scores = sym.Reshape(sym.Concat(*classes, name="classes", dim=1), shape=(0, -1, 3))
    scores = sym.transpose(scores, axes=(0, 2, 1), name="scores")
    found = sym.SoftmaxOutput(scores, name="softmax", multi_output=True, normalization="valid")
    moved = sym.Concat(*places, name="places", dim=1)
    loss = sym.MakeLoss(sym.smooth_l1(moved - 0.25, scalar=1.0), name="loss", grad_scale=0.5)
    return sym.Group([found, loss, sym.BlockGrad(moved, name="seen")])


def recurrent(sym: Any) -> Any:
    """Words embedded, two layers of LSTM by the RNN operator, and every step classified."""
    x = sym.Embedding(sym.Variable("data"), name="embed", input_dim=11, output_dim=6)
    x = sym.transpose(x, axes=(1, 0, 2), name="steps")
    x = sym.RNN(x, name="rnn", mode="lstm", state_size=7, num_layers=2)
    x = sym.FullyConnected(sym.Reshape(x, shape=(-1, 7)), name="fc", num_hidden=11)
    return sym.SoftmaxOutput(x, name="softmax")


def unrolled(sym: Any) -> Any:
    """One layer of LSTM, step by step, with shared weights."""
    x = sym.Embedding(sym.Variable("data"), name="embed", input_dim=11, output_dim=6)
    steps = sym.SliceChannel(x, name="steps", num_outputs=4, axis=1, squeeze_axis=True)
    shared = {k: sym.Variable(k) for k in ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")}
    h, c = (sym.Variable(f"{name}_data", shape=(3, 5)) for name in ("h0", "c0"))
    outputs = []
    for t in range(4):
        into, over = ({"weight": shared[f"{s}_weight"], "bias": shared[f"{s}_bias"]}
                      for s in ("i2h", "h2h"))  # fmt: skip
        gates = sym.FullyConnected(steps[t], name=f"t{t}_i2h", num_hidden=20, **into)
        gates = gates + sym.FullyConnected(h, name=f"t{t}_h2h", num_hidden=20, **over)
        i, f, g, o = sym.SliceChannel(gates, name=f"t{t}_gates", num_outputs=4)
        c = sym.sigmoid(f) * c + sym.sigmoid(i) * sym.tanh(g)
        h = sym.sigmoid(o) * sym.tanh(c)
        outputs.append(h)
    x = sym.Concat(*outputs, name="all", dim=0)
    return sym.SoftmaxOutput(sym.FullyConnected(x, name="fc", num_hidden=11), name="softmax")


def attention(sym: Any) -> Any:
    """Words embedded, two heads of attention, layer normalisation, a residual."""
    x = sym.Embedding(sym.Variable("data"), name="embed", input_dim=11, output_dim=8)
    parts = {}
    for name in ("query", "key", "value"):
        y = sym.FullyConnected(x, name=name, num_hidden=8, flatten=False)
        y = sym.transpose(sym.Reshape(y, shape=(0, 0, 2, 4)), axes=(0, 2, 1, 3))
        parts[name] = sym.Reshape(y, shape=(-3, 0, 0), name=f"{name}s")
    scores = sym.batch_dot(parts["query"], parts["key"], transpose_b=True, name="scores") * 0.5
    seen = sym.batch_dot(sym.softmax(scores, axis=-1, name="weights"), parts["value"], name="seen")
    seen = sym.transpose(sym.Reshape(seen, shape=(-4, -1, 2, 0, 0)), axes=(0, 2, 1, 3))
    seen = sym.Reshape(seen, shape=(0, 0, -3), name="heads")
    x = sym.LayerNorm(x + seen, name="norm", eps=1e-4)
    x = sym.FullyConnected(sym.mean(x, axis=1, name="pooled"), name="fc", num_hidden=5)
    return sym.SoftmaxOutput(x, name="softmax")


def segmentation(sym: Any) -> Any:
    """Every pixel classified: strided convolutions, Deconvolution, a skip, sizes made alike."""
    x = relu(sym, conv(sym, sym.Variable("data"), "conv1", 6), "relu1")
    deep = relu(sym, conv(sym, maximum(sym, x, "pool1"), "conv2", 8), "relu2")
    deeper = relu(sym, conv(sym, maximum(sym, deep, "pool2"), "conv3", 8), "relu3")
    how = {"kernel": (4, 4), "stride": (2, 2), "pad": (1, 1), "no_bias": True}
    up = sym.Deconvolution(conv(sym, deeper, "score3", 3, 1), name="up1", num_filter=3, **how)
    up = sym.slice_like(up, deep, axes=(2, 3)) + conv(sym, deep, "score2", 3, 1)
    up = sym.Deconvolution(up, name="up2", num_filter=3, **how)
    return sym.SoftmaxOutput(up, name="softmax", multi_output=True)


def autoencoder(sym: Any) -> Any:
    """Down to a few numbers and back, compared with what came in."""
    data = x = sym.Variable("data")
    for k, width in enumerate((16, 4, 16)):
        x = sym.FullyConnected(x, name=f"fc{k}", num_hidden=width)
        x = sym.LeakyReLU(x, name=f"elu{k}", act_type="elu", slope=0.3)
    x = sym.FullyConnected(x, name="back", num_hidden=20)
    return sym.LinearRegressionOutput(x, label=sym.BlockGrad(data), name="error")


def dcgan(sym: Any) -> Any:
    """A generator out of Deconvolutions and the discriminator that looks at its pictures."""
    x = sym.Reshape(sym.Variable("data"), shape=(0, 0, 1, 1), name="seed")
    how = {"kernel": (4, 4), "no_bias": True}
    x = sym.Deconvolution(x, name="g1", num_filter=8, **how)
    x = norm_relu(sym, x, "g1")
    x = sym.Deconvolution(x, name="g2", num_filter=3, stride=(2, 2), pad=(1, 1), **how)
    picture = sym.Activation(x, name="picture", act_type="tanh")
    y = conv(sym, picture, "d1", 6, 4, stride=(2, 2), pad=(1, 1), no_bias=True)
    y = sym.LeakyReLU(y, name="d1_leaky", act_type="leaky", slope=0.2)
    y = normal(sym, conv(sym, y, "d2", 8, 4, pad=(0, 0), no_bias=True), "d2_bn")
    y = sym.FullyConnected(sym.Flatten(y, name="flat"), name="fc", num_hidden=1)
    return sym.Group([sym.LogisticRegressionOutput(y, name="real"), sym.BlockGrad(picture)])


ZOO = {
    "alexnet": (alexnet, (3, 3, 21, 21)),
    "vgg": (vgg, (3, 3, 12, 12)),
    "inception": (inception, (3, 3, 9, 9)),
    "resnet_v1": (resnet_v1, (4, 3, 10, 10)),
    "resnet_v2": (resnet_v2, (4, 3, 10, 10)),
    "densenet": (densenet, (4, 3, 8, 8)),
    "mobilenet": (mobilenet, (4, 3, 12, 12)),
    "detector": (detector, (2, 3, 12, 12)),
    "recurrent": (recurrent, (3, 5)),
    "unrolled": (unrolled, (3, 4)),
    "attention": (attention, (3, 6)),
    "segmentation": (segmentation, (2, 3, 12, 12)),
    "autoencoder": (autoencoder, (6, 20)),
    "dcgan": (dcgan, (4, 6)),
}
CLASSES = {
    **dict.fromkeys(ZOO, 5),
    "detector": 3,
    "recurrent": 11,
    "unrolled": 11,
    "segmentation": 3,
}
WORDS = dict.fromkeys(("recurrent", "unrolled", "attention"), 11)
