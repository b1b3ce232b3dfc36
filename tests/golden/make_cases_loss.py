"""Records of outputs with a gradient of their own, softmax and its relatives, updates."""

import numpy as np
from make_case import case, floats, i, n, u, v


def by_head(inputs, heads, outputs, gradients):
    """SoftmaxOutput's gradient with `out_grad`: times the head gradient."""
    data, label = inputs["data"], inputs["label"].astype(int)
    one_hot = label[:, None] == np.arange(data.shape[1])
    return {**gradients, "data": ((outputs[0] - one_hot) * heads[0]).astype(data.dtype)}


def softmax_output():
    """All options, and those that meet."""
    flat = {"data": n(4, 5), "label": v(1, 4, -1, 0)}
    for tag, attrs in (
        ("plain", {}),
        ("scale", {"grad_scale": 2.5}),
        ("batch", {"normalization": "batch"}),
        ("valid", {"normalization": "valid"}),
        ("ignore", {"use_ignore": True}),
        ("ignore 4", {"use_ignore": True, "ignore_label": 4}),
        ("ignore valid", {"use_ignore": True, "normalization": "valid", "grad_scale": 3.0}),
        ("ignore batch", {"use_ignore": True, "normalization": "batch"}),
        ("smooth", {"smooth_alpha": 0.1}),
        (
            "smooth ignore valid",
            {"smooth_alpha": 0.2, "use_ignore": True, "normalization": "valid"},
        ),
    ):
        case("SoftmaxOutput", flat, attrs, tag=tag)
    case("SoftmaxOutput", flat, {"out_grad": True}, tag="out_grad", ours=by_head)
    floats("SoftmaxOutput", flat)
    odd = {"data": n(3, 4), "label": v(1.7, 9, 3)}
    case("SoftmaxOutput", odd, tag="labels outside and between")
    case("SoftmaxOutput", {"data": n(3, 4), "label": u(0, 1, 3, 4)}, tag="distribution")
    none = {"use_ignore": True, "normalization": "valid"}
    case("SoftmaxOutput", {"data": n(2, 3), "label": v(-1, -1)}, none, tag="nothing valid")
    wide = {"data": v([1000.0, 0], [-1e30, 0]), "label": v(0, 1)}
    case("SoftmaxOutput", wide, tag="far apart")
    case("SoftmaxOutput", {"data": n(2, 3, 4), "label": i(0, 3, 2, 3)}, tag="3d joined")
    image = {"data": n(2, 3, 2, 2), "label": v([[1, 0], [-1, 1]], [[2, 2], [0, -1]])}
    for norm in ("null", "batch", "valid"):
        for ignore in (False, True):
            attrs = {"multi_output": True, "normalization": norm, "use_ignore": ignore}
            case("SoftmaxOutput", image, attrs, tag=f"multi {norm} {'ignore' if ignore else ''}")
    lined = {**image, "label": i(0, 3, 2, 4)}
    case("SoftmaxOutput", lined, {"multi_output": True}, tag="multi flat label")
    rows = {"data": n(2, 3, 4), "label": i(0, 4, 2, 3)}
    for norm in ("null", "batch", "valid"):
        attrs = {"preserve_shape": True, "normalization": norm}
        case("SoftmaxOutput", rows, attrs, tag=f"preserve {norm}")


def regressions():
    """The three of them, their scale and their label shapes."""
    for op in ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"):
        floats(op, {"data": n(4, 3), "label": n(4, 3)})
        case(op, {"data": n(4, 3), "label": n(4, 3)}, {"grad_scale": 2.0}, tag="scale")
        case(op, {"data": n(5), "label": n(5)}, tag="1d")
        case(op, {"data": n(5, 1), "label": n(5)}, tag="column")
        case(op, {"data": n(2, 2, 1, 2), "label": n(2, 4)}, tag="4d")
        case(op, {"data": v(1.0, 2, 3), "label": v(1.0, 3, 2)}, tag="equal")


def made_losses():
    """What stops or starts a gradient."""
    data = {"data": v(1.0, 0.0, 3.0, 0.2)}
    for tag, attrs in (
        ("plain", {}),
        ("scale", {"grad_scale": 3.0}),
        ("batch", {"grad_scale": 3.0, "normalization": "batch"}),
        ("valid", {"grad_scale": 3.0, "normalization": "valid", "valid_thresh": 0.5}),
        ("none valid", {"normalization": "valid", "valid_thresh": 9.0}),
    ):
        case("MakeLoss", data, attrs, tag=tag)
    case("MakeLoss", {"data": n(3, 2)}, {"normalization": "batch"}, tag="batch 2d")
    floats("make_loss", {"data": n(2, 3)})
    floats("BlockGrad", {"data": n(2, 3)})
    floats("identity", {"data": n(2, 3)})
    both = {"data": n(4, 5), "label": i(0, 5, 4)}
    case("softmax_cross_entropy", both, grad=["data"])
    for scalar in (1.0, 2.0, 0.5):
        edge = v(0.0, 0.1, -0.1, 0.3, -3.0, 3.0)
        case("smooth_l1", {"data": edge}, {"scalar": scalar}, tag=f"{scalar}")
    floats("smooth_l1", {"data": n(3, 4)}, {"scalar": 1.5})


def softmaxes():
    """Axes and temperatures."""
    for op in ("softmax", "log_softmax", "softmin"):
        floats(op, {"data": n(3, 5)})
        case(op, {"data": n(3, 4, 2)}, {"axis": 1}, tag="axis 1")
        case(op, {"data": n(3, 4, 2)}, {"axis": 0, "temperature": 2.5}, tag="axis 0 warm")
        case(op, {"data": n(2, 17)}, {"temperature": 0.5}, tag="cold")
        case(op, {"data": v([1000.0, 0, -1000], [-1e30, 0, 1])}, tag="far apart")
        case(op, {"data": n(4)}, tag="1d")
        case(op, {"data": n(3, 1)}, tag="one class")


def updates():
    """Stochastic gradient descent, in place."""
    pair = {"weight": n(3, 4), "grad": n(3, 4)}
    for tag, attrs in (
        ("plain", {}),
        ("wd", {"wd": 0.3}),
        ("clip", {"wd": 0.3, "rescale_grad": 2.0, "clip_gradient": 0.5}),
        ("clip 0", {"clip_gradient": 0.0}),
    ):
        case("sgd_update", pair, {"lr": 0.1, **attrs}, tag=tag, mode="update")
        moved = {**pair, "mom": n(3, 4)}
        both = {"lr": 0.1, "momentum": 0.9, **attrs}
        case("sgd_mom_update", moved, both, tag=tag, mode="update")
    for dtype in ("float64", "float16"):
        case("sgd_update", pair, {"lr": 0.1}, tag=dtype, mode="update", dtype=dtype)
        both = {"lr": 0.1, "momentum": 0.9, "wd": 0.1}
        moved = {**pair, "mom": n(3, 4)}
        case("sgd_mom_update", moved, both, tag=dtype, mode="update", dtype=dtype)


for enter in (softmax_output, regressions, made_losses, softmaxes, updates):
    enter()
