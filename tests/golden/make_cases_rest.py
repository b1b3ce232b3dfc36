"""Records of operators that no other table has: layers, sequences, arrays made, picked, updated."""

from make_case import case, d, floats, i, n, u, v

NAN = float("nan")
HALF = "float16"


def layers():
    """Normalizations, a transposed convolution, recurrent layers, a loss of margins."""
    image, filters = n(2, 3, 4, 5), n(3, 2, 3, 3)
    attrs = {"kernel": [3, 3], "num_filter": 2}
    case("Deconvolution", {"data": image, "weight": filters}, {**attrs, "no_bias": True})
    more = {"stride": [2, 2], "pad": [1, 1], "adj": [1, 1], "no_bias": False}
    given = {"data": image, "weight": filters, "bias": n(2)}
    case("Deconvolution", given, {**attrs, **more}, tag="strides and bias")
    grouped = {"kernel": [2, 2], "num_filter": 6, "num_group": 3, "no_bias": True}
    case("Deconvolution", {"data": image, "weight": n(3, 2, 2, 2)}, grouped, tag="groups")
    one = {"kernel": [3], "num_filter": 2, "dilate": [2], "no_bias": True}
    case("Deconvolution", {"data": n(2, 3, 6), "weight": n(3, 2, 3)}, one, tag="1 axis")
    sides = {"data": image, "gamma": u(0.5, 1.5, 3), "beta": n(3)}
    case("InstanceNorm", sides, {"eps": 1e-3})
    given = {"data": n(2, 4, 3, 5), "gamma": u(0.5, 1.5, 2), "beta": n(2)}
    case("GroupNorm", given, {"num_groups": 2, "eps": 1e-3})
    given = {"data": n(2, 3, 4), "gamma": u(0.5, 1.5, 4), "beta": n(4)}
    floats("LayerNorm", given, types=("float32", "float64"))
    given = {"data": n(2, 3, 4), "gamma": u(0.5, 1.5, 3), "beta": n(3)}
    case("LayerNorm", given, {"axis": 1, "eps": 1e-2}, tag="axis 1")
    for linear in (False, True):
        attrs = {"margin": 0.5, "regularization_coefficient": 0.3, "use_linear": linear}
        inputs = {"data": n(4, 3), "label": i(0, 3, 4)}
        case("SVMOutput", inputs, attrs, tag=f"linear {linear}", grad=["data"])
    for mode, gates in (("rnn_relu", 1), ("rnn_tanh", 1), ("lstm", 4), ("gru", 3)):
        for tag, layers_, both in (("", 1, False), ("two ways", 2, True)):
            ways, size = 1 + both, 4
            count = sum(
                ways * gates * size * ((3 if k == 0 else size * ways) + size + 2)
                for k in range(layers_)
            )
            inputs = {
                "data": n(5, 2, 3),
                "parameters": u(-0.5, 0.5, count),
                "state": n(layers_ * ways, 2, size),
            }
            if mode == "lstm":
                inputs["state_cell"] = n(layers_ * ways, 2, size)
            attrs = {"mode": mode, "state_size": size, "num_layers": layers_, "bidirectional": both}
            case("RNN", inputs, {**attrs, "state_outputs": True}, tag=f"{mode} {tag}")


def sequences():
    """Steps of sequences, whole or as long as they are said to be."""
    lengths = v(2, 4, 1)
    for op in ("SequenceLast", "SequenceMask", "SequenceReverse"):
        case(op, {"data": n(4, 3, 2)}, tag="whole")
        more = {"value": -1.5} if op == "SequenceMask" else {}
        inputs = {"data": n(4, 3, 2), "sequence_length": lengths}
        case(op, inputs, {"use_sequence_length": True, **more}, tag="lengths", grad=["data"])
        if op != "SequenceReverse":
            inputs = {"data": n(3, 4, 2), "sequence_length": lengths}
            attrs = {"use_sequence_length": True, "axis": 1}
            case(op, inputs, attrs, tag="axis 1", grad=["data"])


def made():
    """Arrays out of nothing."""
    for tag, attrs in (
        ("stop", {"start": 5}),
        ("between", {"start": 1, "stop": 4, "step": 0.5}),
        ("repeat", {"start": 0, "stop": 3, "repeat": 2, "dtype": "int32"}),
        ("down", {"start": 3, "stop": -1, "step": -1}),
    ):
        case("_arange", {}, attrs, tag=tag, grad=False)
    for tag, attrs in (("square", {"N": 3}), ("wide", {"N": 3, "M": 5, "k": 1}),
                       ("below", {"N": 4, "M": 3, "k": -2, "dtype": "float64"})):  # fmt: skip
        case("_eye", {}, attrs, tag=tag, grad=False)
    case("_full", {}, {"shape": [2, 3], "value": 2.5}, grad=False)
    case("_full", {}, {"shape": [2], "value": 7, "dtype": "int32"}, tag="int32", grad=False)
    for op in ("_ones", "_zeros"):
        case(op, {}, {"shape": [2, 3]}, grad=False)
        case(op, {}, {"shape": [3], "dtype": "uint8"}, tag="uint8", grad=False)
    for end in (True, False):
        attrs = {"start": 1, "stop": 2, "num": 5, "endpoint": end}
        case("_linspace", {}, attrs, tag=f"end {end}", grad=False)


def places():
    """Elements by their order, their position, or where they go."""
    for op in ("sort", "argsort", "topk"):
        for tag, attrs in (("", {}), ("axis 0", {"axis": 0}), ("flat", {"axis": None})):
            case(
                op, {"data": d(3, 4)}, attrs, tag=f"up {tag}", grad=op == "sort" and tag == "axis 0"
            )
    case("sort", {"data": d(3, 4)}, {"is_ascend": False, "axis": 1}, tag="down")
    case("argsort", {"data": d(3, 4)}, {"is_ascend": False, "dtype": "int32"}, tag="down",
         grad=False)  # fmt: skip
    for kind in ("value", "indices", "mask", "both"):
        for up in (False, True):
            attrs = {"k": 2, "axis": 1, "ret_typ": kind, "is_ascend": up}
            case("topk", {"data": d(2, 5)}, attrs, tag=f"{kind} {up}", grad=kind == "value")
    whole = {"dtypes": {"indices": "int32"}, "grad": False}
    case("batch_take", {"a": n(3, 4), "indices": v(0, 3, 1)}, **whole)
    case("gather_nd", {"data": n(3, 4, 2), "indices": v([0, 2], [3, 1])}, grad=["data"])
    attrs = {"shape": [3, 4]}
    case("scatter_nd", {"data": n(2), "indices": v([0, 2], [3, 1])}, attrs, grad=["data"])
    attrs = {"shape": [3, 4]}
    case("_ravel_multi_index", {"data": v([0, 2, 1], [3, 0, 1])}, attrs, grad=False)
    case("_unravel_index", {"data": v(3, 8, 5)}, attrs, grad=False)
    attrs = {"begin": [0, 1], "end": [2, 4]}
    case("_slice_assign", {"lhs": n(3, 4), "rhs": n(2, 3)}, attrs, grad=False)
    steps = {"begin": [None, 3], "end": [None, None], "step": [2, -2]}
    case("_slice_assign", {"lhs": n(3, 4), "rhs": n(2, 2)}, steps, tag="steps", grad=False)
    case("_slice_assign_scalar", {"data": n(3, 4)}, {**attrs, "scalar": 2.5}, grad=False)
    for tag, attrs in (
        ("sections", {"sections": 2, "axis": 1, "indices": []}),
        ("squeezed", {"sections": 4, "axis": 1, "squeeze_axis": True, "indices": []}),
        ("indices", {"indices": [0, 1, 3], "axis": 1}),
    ):
        case("_split_v2", {"data": n(2, 4)}, attrs, tag=tag)
    for op in ("depth_to_space", "space_to_depth"):
        case(op, {"data": n(2, 8, 2, 4)}, {"block_size": 2})
    for tag, attrs in (("", {}), ("above", {"k": 1}), ("below", {"k": -1})):
        case("diag", {"data": n(3, 4)}, attrs, tag=f"of a matrix {tag}")
        case("diag", {"data": n(3)}, attrs, tag=f"of a vector {tag}")
    case("diag", {"data": n(2, 3, 4)}, {"axis1": 2, "axis2": 0}, tag="axes")
    case("reshape_like", {"lhs": n(2, 6), "rhs": n(3, 4)}, grad=["lhs"])
    attrs = {"lhs_begin": 0, "lhs_end": 2, "rhs_begin": 1, "rhs_end": 2}
    case("reshape_like", {"lhs": n(2, 3, 4), "rhs": n(5, 6)}, attrs, tag="parts", grad=["lhs"])


def numbers():
    """Logic, counts, and products of columns."""
    pairs = {"lhs": v([0.0, 2], [1, 0]), "rhs": v([0.0, 0], [-1, 3])}
    for op in ("_logical_and", "_logical_or", "_logical_xor"):
        case(op, pairs, grad=False)
    case("_grad_add", {"lhs": n(2, 3), "rhs": n(2, 3)}, grad=False)
    case("_histogram", {"data": n(20)}, {"bin_cnt": 5, "range": [-2, 2]}, grad=False)
    case("_histogram", {"data": n(20), "bins": v(-2, -1, 0.5, 2)}, tag="bins", grad=False)
    case("khatri_rao", {"a": n(2, 3), "b": n(4, 3)}, {"num_args": 2}, grad=False)
    for tag, attrs in (
        ("all", {"axes": [0, 1]}),
        ("axis", {"axes": [1]}),
        ("kept", {"axes": [0], "keepdims": True}),
    ):
        case("moments", {"data": n(3, 4)}, attrs, tag=tag)
    for tag, values in (("yes", v(1.0, 2)), ("inf", v(1.0, float("inf"))), ("nan", v(NAN, 1.0))):
        case("all_finite", {"data": values}, tag=tag, grad=False)
        inputs = {"a": v(1.0), "b": values}
        case("multi_all_finite", inputs, {"num_arrays": 2}, tag=tag, grad=False)
    case("cast_storage", {"data": n(2, 3)}, {"stype": "default"})
    case("_scatter_plus_scalar", {"data": n(2, 3)}, {"scalar": 1.5})
    case("_scatter_minus_scalar", {"data": n(2, 3)}, {"scalar": 1.5})


def updates():
    """One weight at a time."""
    pair = {"weight": n(2, 3), "grad": n(2, 3)}
    rates = {"lr": 0.1, "wd": 0.01, "rescale_grad": 0.5, "clip_gradient": 0.6}
    positive = u(0.1, 1, 2, 3)
    for op, states, attrs in (
        ("adam_update", {"mean": n(2, 3), "var": positive}, {"beta1": 0.8, "epsilon": 1e-3}),
        ("ftml_update", {"d": positive, "v": positive, "z": n(2, 3)}, {"t": 3}),
        ("ftrl_update", {"z": n(2, 3), "n": positive}, {"lamda1": 0.1, "beta": 0.5}),
        ("nag_mom_update", {"mom": n(2, 3)}, {"momentum": 0.9}),
        ("rmsprop_update", {"n": positive}, {"gamma1": 0.8, "clip_weights": 0.9}),
        (
            "rmspropalex_update",
            {"n": u(1, 2, 2, 3), "g": u(-0.5, 0.5, 2, 3), "delta": n(2, 3)},
            {"gamma1": 0.8, "gamma2": 0.7},
        ),
        ("signsgd_update", {}, {}),
        ("signum_update", {"mom": n(2, 3)}, {"momentum": 0.9, "wd_lh": 0.02}),
    ):
        given = {**rates, **attrs}
        if op == "ftml_update":
            given["clip_grad"] = given.pop("clip_gradient")
        case(op, {**pair, **states}, given, mode="update")
    types = {"dtypes": {"weight": HALF, "grad": HALF}, "mode": "update"}
    for op, states in (
        ("mp_sgd_update", {}),
        ("mp_sgd_mom_update", {"mom": n(2, 3)}),
        ("mp_nag_mom_update", {"mom": n(2, 3)}),
    ):
        more = {"momentum": 0.9} if states else {}
        case(op, {**pair, **states, "weight32": n(2, 3)}, {**rates, **more}, **types)


for table in (layers, sequences, made, places, numbers, updates):
    table()
