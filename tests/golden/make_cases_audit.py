"""Records of operators that `tests/ops/test_audit.py` found without any."""

from make_case import case, n, u, v


def places():
    """What is taken from places, and put there."""
    new = {"mode": "update", "heads": []}
    case("_contrib_boolean_mask", {"data": n(4, 3), "index": v(1, 0, 2, 0)}, **new)
    case("_contrib_boolean_mask", {"data": n(3), "index": v(0, 1, -1)}, tag="row", **new)
    case("fill_element_0index", {"lhs": n(3, 4), "mhs": n(3), "rhs": v(1, 3, 0)}, **new)
    case("_onehot_encode", {"index": v(1, 0, 3), "output": n(3, 4)}, **new)


def joined():
    """Quotients and parameters in a row."""
    case("_scatter_elemwise_div", {"lhs": n(2, 3), "rhs": u(0.5, 2, 2, 3)})
    attrs = {"dim": 0, "num_args": 2}
    case("_rnn_param_concat", {"arg0": n(3), "arg1": n(4)}, attrs, grad=False)


def convolved():
    """Convolution at moved places, weighted."""
    inputs = {
        "data": n(1, 2, 4, 3),
        "offset": n(1, 18, 4, 3),
        "mask": u(0, 1, 1, 9, 4, 3),
        "weight": n(3, 2, 3, 3),
        "bias": n(3),
    }
    attrs = {"kernel": [3, 3], "pad": [1, 1], "num_filter": 3}
    case("_contrib_ModulatedDeformableConvolution", inputs, attrs, grad=False)  # GPUs alone have it


places()
joined()
convolved()
