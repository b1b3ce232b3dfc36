"""Records of layers: fully connected, convolution, pooling, activations, normalisation."""

import numpy as np
from make_case import case, d, floats, i, n, u, v

TWO = ("float32", "float64")


def fully_connected():
    """Bias or none, flattened or not, shapes that divide by nothing."""
    shapes = {"data": n(3, 7), "weight": n(5, 7), "bias": n(5)}
    floats("FullyConnected", shapes, {"num_hidden": 5}, types=TWO)
    case(
        "FullyConnected",
        {"data": n(2, 3, 4), "weight": n(1, 12), "bias": n(1)},
        {"num_hidden": 1},
        tag="joined axes",
    )
    case(
        "FullyConnected",
        {"data": n(2, 3, 4), "weight": n(5, 4), "bias": n(5)},
        {"num_hidden": 5, "flatten": False},
        tag="last axis",
    )
    case(
        "FullyConnected",
        {"data": n(1, 17), "weight": n(9, 17)},
        {"num_hidden": 9, "no_bias": True},
        tag="no bias",
    )
    case(
        "FullyConnected",
        {"data": n(4), "weight": n(5, 4), "bias": n(5)},
        {"num_hidden": 5, "flatten": False},
        tag="vector",
    )


def conv(tag, data, kernel, filters, groups=1, bias=True, **attrs):
    """One convolution."""
    weight = n(filters, data[1] // groups, *kernel)
    inputs = {"data": n(*data), "weight": weight, **({"bias": n(filters)} if bias else {})}
    attrs = {"kernel": list(kernel), "num_filter": filters, **attrs}
    if groups > 1:
        attrs["num_group"] = groups
    if not bias:
        attrs["no_bias"] = True
    case("Convolution", inputs, attrs, tag=tag, dtype=attrs.pop("dtype", "float32"))


def convolutions():
    """One to three spatial axes."""
    conv("1d", (2, 3, 11), (3,), 4)
    conv("1d strided", (2, 4, 12), (4,), 6, 2, stride=[3], pad=[2], dilate=[2])
    conv("2d", (2, 3, 7, 6), (3, 3), 4)
    conv("2d float64", (2, 3, 7, 6), (3, 2), 4, dtype="float64")
    conv("2d pad", (1, 2, 5, 5), (3, 3), 3, pad=[1, 1])
    conv("2d stride pad", (2, 3, 9, 8), (3, 2), 5, stride=[2, 3], pad=[2, 1])
    conv("2d dilate", (1, 2, 9, 9), (3, 3), 2, dilate=[2, 3])
    conv("2d groups", (2, 6, 5, 5), (3, 3), 4, 2, bias=False)
    conv("2d depthwise", (1, 4, 6, 6), (3, 3), 4, 4, pad=[1, 1])
    conv("2d pointwise", (2, 5, 4, 3), (1, 1), 7, stride=[2, 2])
    conv("2d no bias", (1, 1, 8, 8), (5, 5), 3, bias=False)
    conv("2d whole image", (2, 3, 4, 4), (4, 4), 2)
    conv("3d", (1, 2, 4, 5, 6), (2, 3, 3), 3, pad=[1, 0, 1], stride=[1, 2, 1])
    conv("3d groups", (2, 4, 3, 4, 3), (2, 2, 2), 4, 2, bias=False, dilate=[1, 2, 1])


def pool(tag, data, attrs, spec=d, **rest):
    """One pooling."""
    case("Pooling", {"data": spec(*data)}, attrs, tag=tag, **rest)


def poolings():
    """Every kind, convention and corner."""
    for kind in ("max", "avg", "sum"):
        pool(f"{kind} 2d", (2, 3, 6, 7), {"kernel": [2, 2], "stride": [2, 2], "pool_type": kind})
        attrs = {"kernel": [3, 2], "stride": [2, 3], "pad": [1, 1], "pool_type": kind}
        pool(f"{kind} pad", (2, 2, 7, 8), attrs)
        pool(f"{kind} pad full", (2, 2, 6, 8), {**attrs, "pooling_convention": "full"})
        pool(f"{kind} overlap", (1, 2, 5, 5), {"kernel": [3, 3], "pool_type": kind})
        pool(f"{kind} global", (2, 3, 4, 5), {"global_pool": True, "pool_type": kind})
        pool(f"{kind} 1d", (2, 3, 9), {"kernel": [3], "stride": [2], "pool_type": kind})
        cube = {"kernel": [2, 2, 3], "stride": [2, 1, 2], "pad": [0, 1, 1], "pool_type": kind}
        pool(f"{kind} 3d", (1, 2, 4, 3, 5), cube)
        gap = {"kernel": [2], "stride": [4], "pooling_convention": "full", "pool_type": kind}
        pool(f"{kind} full beyond the end", (1, 1, 7), gap)
        wide = {"kernel": [2], "stride": [2], "pad": [1], "pooling_convention": "full"}
        pool(f"{kind} full in the padding", (1, 1, 7), {**wide, "pool_type": kind})
    inner = {"kernel": [3, 3], "stride": [2, 2], "pad": [1, 1], "pool_type": "avg"}
    inner["count_include_pad"] = False
    pool("avg without padding", (2, 2, 6, 5), inner)
    full = {**inner, "pooling_convention": "full"}
    pool("avg without padding full", (1, 2, 6, 5), full)
    pool("max float64", (1, 2, 5, 5), {"kernel": [2, 2]}, dtype="float64")
    pool("max float16", (1, 2, 5, 5), {"kernel": [2, 2]}, dtype="float16")
    flat = {"kernel": [3, 3], "stride": [2, 2], "pad": [1, 1]}
    for name, shape in (("apart", [2, 2]), ("overlapping", [3, 3])):
        ties = {"kernel": shape, "stride": [s - (s > 2) for s in shape]}
        case("Pooling", {"data": ["o", [1, 2, 5, 5]]}, ties, tag=f"max ties {name}")
    case("Pooling", {"data": v([[[-1.0] * 5] * 5])}, flat, tag="max ties below zero")
    case("Pooling", {"data": i(0, 3, 2, 2, 6, 6)}, {"kernel": [3, 3]}, tag="max many ties")
    low = v([[float("-inf"), float("-inf"), 3, 2]])
    case("Pooling", {"data": low}, {"kernel": [2]}, tag="max of -inf", grad=False)


def selu_slope(values, heads, outputs, gradients):
    """What MXNet gives below 0 is no derivative of what it computes."""
    x = values["data"].astype("f8")
    slope = np.where(x > 0, 1, 1.6732632423543772 * np.exp(np.minimum(x, 0)))
    return {"data": (heads[0] * slope * 1.0507009873554805).astype(values["data"].dtype)}


def softmax_slope(values, heads, outputs, gradients):
    """MXNet's gradient is along axis 1, its output along the last."""
    y, g = outputs[0].astype("f8"), heads[0].astype("f8")
    slope = y * (g - (y * g).sum(axis=-1, keepdims=True))
    return {"data": slope.astype(values["data"].dtype)}


def activations():
    """Every type of Activation and the deterministic ones of LeakyReLU."""
    for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
        floats("Activation", {"data": n(3, 5)}, {"act_type": kind}, tag=kind)
        edge = {"data": v(0.0, -0.0, 100.0, -100.0, 1e-8)}
        case("Activation", edge, {"act_type": kind}, tag=f"{kind} edges")
    for kind in ("leaky", "elu", "selu", "gelu"):
        ours = selu_slope if kind == "selu" else None
        floats("LeakyReLU", {"data": n(3, 5)}, {"act_type": kind}, tag=kind, ours=ours)
        edge = {"data": v(0.0, 3.0, -3.0)}
        case("LeakyReLU", edge, {"act_type": kind}, tag=f"{kind} edges", ours=ours)
    case("LeakyReLU", {"data": n(3, 5)}, {"act_type": "leaky", "slope": 0.1}, tag="slope")
    for tag, shape in (("one", 1), ("channels", 3)):
        inputs = {"data": n(2, 3, 4), "gamma": u(0.1, 0.5, shape)}
        case("LeakyReLU", inputs, {"act_type": "prelu"}, tag=f"prelu {tag}")
    floats("hard_sigmoid", {"data": u(-4, 4, 3, 5)})
    case("SoftmaxActivation", {"data": n(3, 5)})
    case("SoftmaxActivation", {"data": n(2, 3, 4)}, {"mode": "channel"}, tag="channel")
    case("SoftmaxActivation", {"data": n(2, 3, 4)}, tag="3d", ours=softmax_slope)


def batch_norm():
    """Training and prediction, every axis, what the flags change."""
    for tag, shape, channels, attrs in (
        ("2d", (5, 3), 3, {}),
        ("4d", (2, 3, 4, 5), 3, {}),
        ("gamma", (2, 3, 4, 5), 3, {"fix_gamma": False}),
        ("eps momentum", (4, 3), 3, {"fix_gamma": False, "eps": 0.1, "momentum": 0.5}),
        ("last axis", (2, 3, 4), 4, {"fix_gamma": False, "axis": -1}),
        ("axis 0", (3, 4), 3, {"fix_gamma": False, "axis": 0}),
        ("global", (4, 3), 3, {"fix_gamma": False, "use_global_stats": True}),
        ("global gamma", (4, 3, 2), 3, {"use_global_stats": True}),
        ("one channel", (7, 1), 1, {"fix_gamma": False}),
    ):
        inputs = {"data": n(*shape), "gamma": u(0.5, 2, channels), "beta": n(channels)}
        aux = {"moving_mean": n(channels), "moving_var": u(0.5, 2, channels)}
        case("BatchNorm", {**inputs, **aux}, attrs, tag=tag)
        case("BatchNorm", {**inputs, **aux}, attrs, tag=f"{tag} predict", train=False, grad=False)
    inputs = {"data": n(4, 3), "gamma": n(3), "beta": n(3), "moving_mean": n(3)}
    inputs["moving_var"] = u(0.5, 2, 3)
    attrs = {"output_mean_var": True, "fix_gamma": False}
    zero = ["z", [3]]
    case("BatchNorm", inputs, attrs, heads=[n(4, 3), zero, zero], tag="statistics")
    case("BatchNorm", inputs, attrs, tag="statistics predict", train=False, grad=False)
    case("BatchNorm", inputs, {"fix_gamma": False}, tag="float64", dtype="float64")
    single = dict.fromkeys(("gamma", "beta", "moving_mean", "moving_var"), "float32")
    case("BatchNorm", inputs, {"fix_gamma": False}, tag="float16", dtype="float16", dtypes=single)


def others():
    """Dropout without chance, normalisations, resizing, embedding."""
    case("Dropout", {"data": n(3, 4)}, {"p": 0.5}, tag="predict", train=False, grad=False)
    case("Dropout", {"data": n(3, 4)}, {"p": 0.0}, tag="p=0")
    for tag, size in (("3", 3), ("5", 5), ("even", 2)):
        attrs = {"nsize": size, "alpha": 0.1, "beta": 0.75, "knorm": 2.0}
        case("LRN", {"data": n(2, 6, 3, 2)}, attrs, tag=tag)
    for mode in ("instance", "channel", "spatial"):
        case("L2Normalization", {"data": n(2, 3, 2, 4)}, {"mode": mode}, tag=mode)
    nearest = {"scale": 2, "sample_type": "nearest"}
    case("UpSampling", {"data": n(2, 3, 2, 3)}, {**nearest, "num_args": 1}, tag="one")
    two = {"arg0": n(1, 2, 4, 4), "arg1": n(1, 3, 2, 2)}
    case("UpSampling", two, {**nearest, "num_args": 2}, tag="concat")
    two = {"arg0": n(1, 2, 4, 4), "arg1": n(1, 2, 2, 2)}
    case("UpSampling", two, {**nearest, "num_args": 2, "multi_input_mode": "sum"}, tag="sum")
    for mode in ("constant", "edge", "reflect"):
        attrs = {"mode": mode, "pad_width": [0, 0, 0, 0, 1, 1, 1, 2], "constant_value": 1.5}
        case("Pad", {"data": n(2, 2, 3, 4)}, attrs, tag=mode)
        attrs = {**attrs, "pad_width": [0, 0, 0, 0, 1, 0, 0, 1, 2, 1]}
        case("Pad", {"data": n(1, 2, 3, 2, 4)}, attrs, tag=f"{mode} 3d")
    attrs = {"input_dim": 6, "output_dim": 3}
    inputs = {"data": v([0, 2, 2], [5, 9, -1]), "weight": n(6, 3)}
    case("Embedding", inputs, attrs, grad=["weight"])
    case("Embedding", inputs, attrs, grad=["weight"], tag="int32", dtypes={"data": "int32"})


for enter in (fully_connected, convolutions, poolings, activations, batch_norm, others):
    enter()
