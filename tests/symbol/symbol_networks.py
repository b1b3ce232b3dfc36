"""Networks that are built alike with MXNet and with gnomon, to be compared as symbols."""


def mlp(mx):
    """Two layers, with attributes from scopes, variables and calls."""
    sym = mx.sym
    with mx.AttrScope(ctx_group="dev1", lr_mult="2", __mood__="good"):
        data = sym.Variable("data", shape=(2, 3), wd_mult=0.5, dtype="float32", attr={"a": "b"})
        weight = sym.Variable("w", lr_mult=3.0, __own__="x")
        fc = sym.FullyConnected(data, weight, num_hidden=10, name="fc1")
    act = sym.Activation(fc, act_type="relu", attr={"__k__": "v"})
    out = sym.FullyConnected(act, num_hidden=3, no_bias=True)
    return sym.SoftmaxOutput(out, name="softmax", grad_scale=0.5)


def lenet(mx):
    """Convolutions, poolings, dropout."""
    sym = mx.sym
    net = sym.Variable("data")
    for k, filters in enumerate((8, 16)):
        net = sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=filters, name=f"conv{k}")
        net = sym.Activation(net, act_type="tanh")
        net = sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = sym.Dropout(sym.Flatten(net), p=0.25)
    net = sym.FullyConnected(net, num_hidden=10, name="fc")
    return sym.SoftmaxOutput(net, name="softmax")


def residual(mx):
    """BatchNorm with its states, a branch that joins."""
    sym = mx.sym
    data = sym.Variable("data")
    net = sym.BatchNorm(data, eps=2e-5, momentum=0.9, fix_gamma=False, name="bn0")
    net = sym.Activation(net, act_type="relu", name="relu0")
    net = sym.Convolution(net, num_filter=4, kernel=(3, 3), pad=(1, 1), no_bias=True, name="conv0")
    net = sym.BatchNorm(net + data, name="bn1")
    net = sym.Pooling(net, global_pool=True, kernel=(7, 7), pool_type="avg", name="pool")
    return sym.FullyConnected(sym.Flatten(net), num_hidden=2, name="fc")


def arithmetic(mx):
    """Python's operators, with symbols and numbers."""
    sym = mx.sym
    a, b = sym.Variable("a"), sym.Variable("b")
    parts = [a + b, a - b, a * b, a / b, a % b, a**b, a + 1, 2.5 + a, a - 1, 1 - a, a * 3, a / 2]
    parts += [1 / a, a % 2, 2 % a, a**2, 2**a, -a, a == b, a != 1, a > b, a.__gt__(1), a >= 2]
    parts += [a < b, a <= b, a * 1e-10, a + 1e20, abs(a), sym.maximum(a, 2), sym.minimum(a, b)]
    parts += [sym.pow(2, a), sym.pow(a, b), sym.hypot(a, 3)]
    return sym.Group(parts)


def many(mx):
    """Operators of any number of inputs, several outputs, long lists."""
    sym = mx.sym
    d = [sym.Variable(f"d{k}") for k in range(11)]
    parts = list(sym.split(sym.Concat(*d, dim=1), num_outputs=3, axis=1, name="parts"))
    total = sym.add_n(*d, name="total")
    return sym.Group([*parts, total, sym.ElementWiseSum(d[0], d[1]), sym.concat(d[0], d[2], dim=0)])


def methods(mx):
    """Operators as methods, and created symbols."""
    sym = mx.sym
    d = sym.Variable("d")
    with mx.name.Prefix("pre_"):
        s = d.reshape((0, -1)).transpose((1, 0)).sum(axis=1).expand_dims(axis=0).flatten()
        s = s.clip(0, 1).astype("float16").slice_axis(axis=1, begin=0, end=2)
    made = [sym.zeros((2, 3)), sym.ones((2,)), sym.full((2,), 3), sym.arange(3), sym.eye(3)]
    return sym.Group([s, d.mean(axis=(1, 2), keepdims=True), *made])


def special(mx):
    """Names and attributes with characters that files escape."""
    v = mx.sym.Variable('a"b\\c\n\té', attr={"k": 'é/\r"\\'})
    return mx.sym.Group([mx.sym.Activation(v, act_type="relu", name='x"y'), v, *([v] * 9)])


def composed(mx):
    """One network in place of another's input, and its inner outputs."""
    first = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="first")
    second = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="second")
    return second(data=first, name="both").get_internals()


def numbered(mx):
    """Operators whose inputs or outputs have numbers for names."""
    sym, a = mx.sym, mx.sym.Variable("a")
    rates = {"lrs": (1, 1), "wds": (0, 0)}
    parts = [sym.linalg.gelqf(a), sym.linalg.syevd(a), sym.linalg.slogdet(a), sym.linalg.det(a)]
    parts += [sym.amp_multicast(num_outputs=2, name="amp"), sym.multi_sum_sq(num_arrays=2)]
    parts += [sym.multi_all_finite(num_arrays=2), sym.contrib.hawkesll(name="h")]
    parts += [sym.split_v2(a, 1), sym.split_v2(a, 2), sym.split(a, num_outputs=1)]
    parts += [sym.multi_sgd_update(num_weights=1, lrs=(1,), wds=(0,), name="one")]
    parts += [sym.multi_sgd_update(num_weights=2, **rates, name="two")]
    settings = {"num_args": 2, "return_mapping": True}
    parts += [sym.contrib.dgl_subgraph(sym.Variable("graph"), a, **settings)]
    return sym.Group(parts)


def initial(mx):
    """Variables made for inputs, whose initializers names do not say."""
    sym, a = mx.sym, mx.sym.Variable("a")
    net = sym.UpSampling(a, scale=2, sample_type="bilinear", num_filter=2, name="up")
    net = sym.LeakyReLU(sym.BatchNorm(net, name="bn"), act_type="prelu", name="prelu")
    return sym.IdentityAttachKLSparseReg(sym.sigmoid(net), name="sparse")


def hidden(mx):
    """Operators with outputs for their own use, which files count."""
    sym, a = mx.sym, mx.sym.Variable("a")
    affine = {"transform_type": "affine", "target_shape": (2, 2)}
    regions = {"spatial_scale": 1, "output_dim": 1, "group_size": 1, "pooled_size": 1}
    parts = [sym.GridGenerator(a, **affine), sym.BilinearSampler(a, sym.Variable("grid"))]
    parts += [sym.SpatialTransformer(a, sampler_type="bilinear", **affine)]
    parts += [sym.Correlation(a, sym.Variable("b")), sym.contrib.BatchNormWithReLU(a)]
    parts += [sym.contrib.DeformablePSROIPooling(name="regions", **regions)]
    parts += [sym.LRN(a, nsize=3), sym.sort(a), sym.Pooling(a, kernel=(2, 2), pool_type="max")]
    return sym.Group(parts)


def casts(mx):
    """Casts of mixed precision between operators, of which files keep none, and as outputs."""
    sym, a = mx.sym, mx.sym.Variable("a")
    half = sym.amp_cast(sym.amp_cast(a, dtype="float32"), dtype="float16")
    both = sym.amp_multicast(half, sym.Variable("b"), num_outputs=2)
    return sym.Group([half, sym.relu(half), both, both[0] + both[1]])


NETWORKS = (mlp, lenet, residual, arithmetic, many, methods, special, composed)
NETWORKS += (numbered, initial, hidden, casts)

#: known shapes of inputs to infer from
GIVEN = {
    "mlp": {"data": (5, 7)},
    "lenet": {"data": (2, 1, 8, 8)},
    "residual": {"data": (2, 4, 6, 6)},
    "composed": {"data": (3, 5)},
    "initial": {"a": (2, 2, 3, 3)},
}

OLD = """{"nodes":[
{"op":"null","param":{},"name":"data","inputs":[],"backward_source_id":-1},
{"op":"null","param":{},"name":"w","inputs":[],"backward_source_id":-1,"attr":{"lr_mult":"3"}},
{"op":"null","param":{},"name":"b","inputs":[],"backward_source_id":-1},
{"op":"FullyConnected","param":{"no_bias":"False","num_hidden":"3"},"name":"fc",
 "inputs":[[0,0],[1,0],[2,0]],"backward_source_id":-1,
 "attr":{"weight_lr_mult":"4","ctx_group":"g","__z__":"1"}},
{"op":"null","param":{},"name":"bn_gamma","inputs":[],"backward_source_id":-1},
{"op":"null","param":{},"name":"bn_beta","inputs":[],"backward_source_id":-1},
{"op":"BatchNorm","param":{"eps":"0.001","momentum":"0.9"},"name":"bn",
 "inputs":[[3,0],[4,0],[5,0]],"backward_source_id":-1}],
"arg_nodes":[0,1,2,4,5],"heads":[[6,0]]}"""
NINE = """{"nodes":[{"op":"null","name":"x","inputs":[]},
{"op":"argmax","name":"m","attr":{"axis":"-1","keepdims":"1"},"inputs":[[0,0,0]]},
{"op":"ElementWiseSum","name":"s","attr":{"num_args":"2"},"inputs":[[0,0,0],[0,0,0]]}],
"arg_nodes":[0],"heads":[[1,0,0],[2,0,0]],"attrs":{"mxnet_version":["int",900]}}"""
TWELVE = """{"nodes":[{"op":"null","name":"x","attr":{"__shape__":"(2L, 3L)"},"inputs":[]},
{"op":"Flatten","name":"f","inputs":[[0,0,0]]}],
"arg_nodes":[0],"heads":[[1,0,0]],"attrs":{"mxnet_version":["int",1200]}}"""

#: texts of older versions
FILES = {"old": OLD, "nine": NINE, "twelve": TWELVE}
