"""Records of CTCLoss."""

from make_case import case, n, v

DATA = n(6, 3, 5)
FIRST = v([1, 2, 0, 0], [1, 1, 0, 0], [2, 3, 4, 1])
GRAD = ["data"]

case("CTCLoss", {"data": DATA, "label": FIRST}, grad=GRAD, tag="first")
last = v([0, 2, -1, -1], [1, 1, -1, -1], [2, 3, 0, 1])
case("CTCLoss", {"data": DATA, "label": last}, {"blank_label": "last"}, grad=GRAD, tag="last")


def finite(inputs, heads, outputs, gradients):
    """MXNet leaves memory as it was where a label is too long for its sequence."""
    gradients["data"][:, 0] = 0
    return gradients


long = v([1, 1, 1, 1], [0, 0, 0, 0], [2, 3, 4, 1])
case("CTCLoss", {"data": DATA, "label": long}, grad=GRAD, tag="long", ours=finite)
inputs = {"data": DATA, "label": v([1, 2, 0, 0], [1, 1, 1, 1], [2, 3, 4, 1])}
lengths = {"data_lengths": v(6, 5, 4), "label_lengths": v(2, 3, 4)}
attrs = {"use_data_lengths": True, "use_label_lengths": True}
case("CTCLoss", {**inputs, **lengths}, attrs, grad=GRAD, tag="lengths")
