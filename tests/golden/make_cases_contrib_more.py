"""Records of further contributed operators."""

from pathlib import Path

from make_case import case, i, u, v


def processes():
    """Likelihoods of point processes."""
    marks = {"marks": "int32"}
    inputs = {
        "lda": u(0.5, 2, 3, 2), "alpha": v(0.2, 0.3), "beta": v(1, 2), "state": u(0, 1, 3, 2),
        "lags": u(0.1, 1, 3, 4), "marks": i(0, 2, 3, 4), "valid_length": v(4, 2, 0),
        "max_time": v(5, 4, 3)}  # fmt: skip
    case("_contrib_hawkesll", inputs, dtypes=marks, grad=["lda", "alpha", "beta"])
    rest = inputs | {"valid_length": v(1, 3, 4), "state": ["z", [3, 2]]}
    case("_contrib_hawkesll", rest, dtypes=marks, grad=["lda", "alpha", "beta"], tag="fresh",
         dtype="float64")  # fmt: skip


def sparse():
    """Operators that are made for sparse storage, on dense arrays."""
    inputs = {"data": v([0, 2, 1], [1, 1, 0]), "weight": u(-1, 1, 3, 2)}
    attrs = {"input_dim": 3, "output_dim": 2}
    case("_contrib_SparseEmbedding", inputs, attrs, grad=False)


def copies():
    """Copies and places."""
    inputs = {"lhs": u(-1, 1, 2, 3), "rhs": u(-1, 1, 2, 3)}
    case("_identity_with_attr_like_rhs", inputs, grad=["lhs"])
    case("_set_value", {"weight": u(-1, 1, 2, 3)}, {"src": 2.5}, mode="out")


def pictures():
    """Images by OpenCV; `picture.png` has 3 rows of 4 pixels."""
    data = {"buf": v(*(Path(__file__).parent / "picture.png").read_bytes())}
    own = {"mode": "update", "heads": [], "dtype": "uint8"}
    for flag in (0, 1):
        case("_cvimdecode", data, {"flag": flag}, tag=f"flag {flag}", **own)
    case("_cvimdecode", data, {"to_rgb": False}, tag="reverse", **own)
    case("_cvimread", {}, {"filename": "tests/golden/picture.png"}, **own)
    image = {"src": i(0, 255, 4, 5, 3)}
    for interp in (0, 1, 3):
        case("_cvimresize", image, {"w": 3, "h": 2, "interp": interp}, tag=f"{interp}", **own)
    case("_cvimresize", image, {"w": 7, "h": 6}, tag="larger", **own)
    sides = {"top": 1, "bot": 2, "left": 3, "right": 0}
    case("_cvcopyMakeBorder", image, {**sides, "value": 7}, tag="value", **own)
    case("_cvcopyMakeBorder", image, {**sides, "values": [1, 2, 3]}, tag="values", **own)
    case("_cvcopyMakeBorder", image, {**sides, "type": 2}, tag="mirror", **own)


for group in (processes, sparse, copies, pictures):
    group()
