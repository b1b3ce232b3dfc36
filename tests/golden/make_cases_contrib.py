"""Records of operators of nd.contrib, densities, and what mixed precision needs."""

from make_case import case, floats, i, n, u, v


def positions():
    """What chooses and places by position."""
    case("cumsum", {"a": n(2, 3, 4)}, {"axis": 1})
    case("cumsum", {"a": n(2, 3)}, tag="all")
    case("cumsum", {"a": i(-4, 9, 5)}, tag="int32", dtype="int32", grad=False)
    case("cumsum", {"a": n(2, 3)}, {"axis": -1, "dtype": "float64"}, tag="cast", grad=False)
    for tag, index in (("some", [2, 0]), ("twice", [1, 1])):
        inputs = {"old_tensor": n(4, 2), "index_vector": v(*index), "new_tensor": n(2, 2)}
        case("_contrib_index_copy", inputs, tag=tag, grad=["old_tensor", "new_tensor"])
    case("_contrib_index_array", {"data": n(2, 3)}, grad=False)
    case("_contrib_index_array", {"data": n(2, 3, 4)}, {"axes": [2, 0]}, tag="axes", grad=False)
    case("_contrib_arange_like", {"data": n(2, 3)}, {"start": 2, "step": 0.5}, grad=False)
    case(
        "_contrib_arange_like", {"data": n(4, 3)}, {"axis": 0, "repeat": 3}, tag="axis", grad=False
    )
    case("_contrib_allclose", {"a": n(2, 3), "b": n(2, 3)}, grad=False)
    near = {"a": v(1.0, 2.0), "b": v(1.000001, 2.0)}
    case("_contrib_allclose", near, tag="near", grad=False)
    case("_contrib_allclose", near, {"rtol": 0, "atol": 0}, tag="strict", grad=False)


def densities():
    """Densities and their gradients."""
    for name, parameters in (
        ("normal", {"mu": n(2), "sigma": u(0.5, 2, 2)}),
        ("gamma", {"alpha": u(0.5, 3, 2), "beta": u(0.5, 2, 2)}),
        ("exponential", {"lam": u(0.5, 2, 2)}),
        ("poisson", {"lam": u(0.5, 3, 2)}),
        ("negative_binomial", {"k": u(1, 4, 2), "p": u(0.2, 0.8, 2)}),
        ("generalized_negative_binomial", {"mu": u(0.5, 3, 2), "alpha": u(0.3, 2, 2)}),
        ("uniform", {"low": v(0.0, 0.1), "high": v(4.0, 5.0)}),
    ):
        sample = u(0.5, 3, 2, 4)
        whole = i(0, 5, 2, 4) if name in ("poisson",) or "binomial" in name else sample
        for is_log in (False, True):
            # of whole numbers the sample has no gradient
            grad = list(parameters) if whole is not sample else True
            inputs = {"sample": whole, **parameters}
            attrs = {"is_log": is_log}
            floats(f"_random_pdf_{name}", inputs, attrs, tag=f"{is_log}", grad=grad,
                   types=("float32", "float64"))  # fmt: skip
    for is_log in (False, True):
        inputs = {"sample": u(0.1, 0.9, 2, 3, 4), "alpha": u(0.5, 3, 2, 4)}
        case("_random_pdf_dirichlet", inputs, {"is_log": is_log}, tag=f"{is_log}")


def attention():
    """Products for attention, with their scale."""
    floats("_contrib_div_sqrt_dim", {"data": n(2, 3, 5)})
    qkv, kv = n(3, 2, 2 * 3 * 4), n(5, 2, 2 * 2 * 4)
    heads = {"heads": 2}
    case("_contrib_interleaved_matmul_selfatt_qk", {"queries_keys_values": qkv}, heads)
    inputs = {"queries_keys_values": qkv, "attention": n(4, 3, 3)}
    case("_contrib_interleaved_matmul_selfatt_valatt", inputs, heads)
    case("_contrib_interleaved_matmul_encdec_qk", {"queries": n(3, 2, 8), "keys_values": kv}, heads)
    inputs = {"keys_values": kv, "attention": n(4, 3, 5)}
    case("_contrib_interleaved_matmul_encdec_valatt", inputs, heads)


def maps():
    """Element by element."""
    floats("_contrib_quadratic", {"data": n(3, 4)}, {"a": 2, "b": -1, "c": 0.5})
    case("_contrib_quadratic", {"data": n(3)}, tag="default")
    floats("_contrib_round_ste", {"data": u(-3, 3, 3, 4)})
    floats("_contrib_sign_ste", {"data": u(-3, 3, 3, 4)})
    case("_contrib_gradientmultiplier", {"data": n(3, 4)}, {"scalar": -2.5})
    case("amp_cast", {"data": n(3, 4)}, {"dtype": "float16"})
    case("amp_cast", {"data": n(3, 4)}, {"dtype": "float32"}, tag="back", dtype="float16")
    case(
        "amp_cast",
        {"data": i(-3, 9, 4)},
        {"dtype": "float16"},
        tag="int",
        dtype="int32",
        grad=False,
    )
    for narrow in (False, True):
        case("amp_multicast", {"data_0": n(2), "data_1": n(3)},
             {"num_outputs": 2, "cast_narrow": narrow}, dtypes={"data_1": "float16"},
             tag=f"{narrow}")  # fmt: skip


def windows():
    """Windows as columns and back."""
    attrs = {"kernel": [2, 3], "stride": [2, 1], "pad": [1, 0], "dilate": [1, 2]}
    case("im2col", {"data": n(2, 3, 5, 7)}, attrs)
    case("im2col", {"data": n(2, 3, 5, 7)}, {"kernel": [3, 3]}, tag="plain")
    case("im2col", {"data": n(2, 3, 7)}, {"kernel": [3], "stride": [2]}, tag="1d")
    columns = n(2, 3 * 6, 3 * 3)
    case("col2im", {"data": columns}, {"output_size": [5, 7], **attrs})
    case("col2im", {"data": n(2, 27, 15)}, {"output_size": [5, 7], "kernel": [3, 3]}, tag="plain")


for group in (positions, densities, attention, maps, windows):
    group()
