"""Records of what moves elements, reduces them, picks them or multiplies matrices."""

from make_case import case, d, floats, i, n, u, v

NAN = float("nan")


def reductions():
    """Axes of every kind."""
    for op in "sum mean prod max min nansum nanprod".split():
        for tag, attrs in (
            ("all", {}),
            ("axis 1", {"axis": 1}),
            ("axes", {"axis": [0, 2]}),
            ("last kept", {"axis": -1, "keepdims": True}),
            ("exclude", {"axis": 1, "exclude": True}),
            ("all kept", {"keepdims": True}),
        ):
            case(
                op,
                {"data": d(2, 3, 5) if op in ("max", "min") else u(0.5, 2, 2, 3, 5)},
                attrs,
                tag=tag,
            )
        case(op, {"data": u(0.5, 2, 4, 3)}, {"axis": 0}, tag="float64", dtype="float64")
        case(op, {"data": u(0.5, 1.5, 5)}, tag="vector")
    for op in ("sum", "mean", "max"):
        case(op, {"data": d(2, 8)}, {"axis": 1}, tag="float16", dtype="float16")
    for op in ("sum", "prod", "max", "mean"):
        case(op, {"data": i(-4, 9, 5)}, tag="int32", dtype="int32", grad=False)
    for op in ("max", "min"):
        case(op, {"data": i(0, 3, 4, 6)}, {"axis": 1}, tag="ties")
        case(op, {"data": v([1.0, NAN, 3], [NAN, 1, 2])}, {"axis": 1}, tag="nan", grad=False)
    for op in ("nansum", "nanprod", "sum"):
        case(op, {"data": v([1.0, NAN, 3], [2, 1, 2])}, {"axis": 1}, tag="nan", grad=op != "sum")
    for order in (1, 2):
        for tag, attrs in (("all", {}), ("axis", {"axis": 1}), ("pair", {"axis": [0, 2]})):
            case("norm", {"data": n(2, 3, 4)}, {"ord": order, **attrs}, tag=f"{order} {tag}")
        attrs = {"ord": order, "axis": -1, "keepdims": True}
        case("norm", {"data": n(2, 3)}, attrs, tag=f"{order} float64", dtype="float64")
    for op in ("argmax", "argmin"):
        for tag, attrs in (("all", {}), ("axis 0", {"axis": 0}), ("last", {"axis": -1})):
            case(op, {"data": d(3, 4, 2)}, attrs, tag=tag, grad=False)
        case(op, {"data": d(3, 4)}, {"axis": 1, "keepdims": True}, tag="kept", grad=False)
        case(op, {"data": i(0, 3, 5, 7)}, {"axis": 1}, tag="ties", grad=False)
        case(op, {"data": i(0, 9, 3, 4)}, {"axis": 1}, tag="int32", dtype="int32", grad=False)
        points = v([1.0, NAN, 3], [NAN, 1, 2])
        case(op, {"data": points}, {"axis": 1}, tag="nan", grad=False)
    case("argmax_channel", {"data": d(3, 5)}, grad=False)


def reshapes():
    """Other shapes of the same elements."""
    for shape in (
        [0, -1],
        [-1],
        [-2],
        [-3, 0],
        [-3, -2],
        [-4, 1, 2, -2],
        [-4, -1, 2, 0, 0],
        [0, -4, -1, 1, 0],
        [4, 0, 2],
        [0, 0, 0, 1],
        [-2, 1],
        [0, -3],
        [2, 12],
    ):
        case("Reshape", {"data": n(2, 3, 4)}, {"shape": shape}, tag=f"{shape}")
    for shape in ([-1, 0], [0, 0, -1], [-3, 0]):
        attrs = {"shape": shape, "reverse": True}
        case("Reshape", {"data": n(2, 3, 4)}, attrs, tag=f"reverse {shape}")
    case("Flatten", {"data": n(2, 3, 4)})
    case("Flatten", {"data": n(3)}, tag="1d")
    floats("Flatten", {"data": n(3, 2, 2)})
    for axis in (0, 1, -1, -2):
        case("expand_dims", {"data": n(2, 3)}, {"axis": axis}, tag=f"{axis}")
    for tag, attrs in (("all", {}), ("first", {"axis": 0}), ("two", {"axis": [0, -1]})):
        case("squeeze", {"data": n(1, 3, 1)}, attrs, tag=tag)
    case("squeeze", {"data": n(1, 1)}, tag="to one")
    for tag, attrs in (
        ("reversed", {}),
        ("axes", {"axes": [1, 2, 0]}),
        ("swap", {"axes": [0, 2, 1]}),
    ):
        case("transpose", {"data": n(2, 3, 4)}, attrs, tag=tag)
    floats("transpose", {"data": n(3, 5)})
    for a, b in ((0, 2), (1, 1), (0, -1)):
        case("SwapAxis", {"data": n(2, 3, 4)}, {"dim1": a, "dim2": b}, tag=f"{a} {b}")


def pieces():
    """Parts cut out, put together, repeated."""
    for tag, attrs in (
        ("block", {"begin": [0, 1], "end": [2, 3]}),
        ("step", {"begin": [0, 0, 1], "end": [2, 3, 4], "step": [1, 2, 2]}),
        ("back", {"begin": [1, None, 3], "end": [None, None, None], "step": [-1, 1, -2]}),
        ("negative", {"begin": [-1], "end": [None]}),
        ("clipped", {"begin": [0], "end": [10]}),
    ):
        case("slice", {"data": n(2, 3, 4)}, attrs, tag=tag)
    for tag, axis, begin, end in (
        ("first", 0, 0, 1),
        ("last", -1, 1, None),
        ("negative", 1, -2, -1),
    ):
        attrs = {"axis": axis, "begin": begin, "end": end}
        case("slice_axis", {"data": n(2, 3, 4)}, attrs, tag=tag)
    for tag, attrs in (("all", {}), ("axis", {"axes": [0]})):
        both = {"data": n(3, 4), "shape_like": n(2, 3)}
        case("slice_like", both, attrs, tag=tag, grad=["data"])
    for tag, attrs in (
        ("two", {"num_outputs": 2, "axis": 2}),
        ("squeezed", {"num_outputs": 3, "axis": 1, "squeeze_axis": True}),
        ("one", {"num_outputs": 1}),
    ):
        case("SliceChannel", {"data": n(2, 3, 4)}, attrs, tag=tag)
    three = {"arg0": n(2, 1, 3), "arg1": n(2, 2, 3), "arg2": n(2, 3, 3)}
    case("Concat", three, {"num_args": 3}, tag="default")
    three = {"arg0": n(2, 3), "arg1": n(1, 3), "arg2": n(4, 3)}
    case("Concat", three, {"num_args": 3, "dim": 0}, tag="rows")
    case("Concat", {"arg0": n(2, 3), "arg1": n(2, 1)}, {"num_args": 2, "dim": -1}, tag="last")
    case("Concat", {"arg0": n(2, 3)}, {"num_args": 1}, tag="one")
    floats("Concat", {"arg0": n(2, 3), "arg1": n(2, 2)}, {"num_args": 2})
    for axis in (0, 1, -1):
        two = {"arg0": n(2, 3), "arg1": n(2, 3)}
        case("stack", two, {"num_args": 2, "axis": axis}, tag=f"{axis}")
    for reps in ([2], [2, 1, 2], [1, 3], [2, 3]):
        case("tile", {"data": n(2, 3)}, {"reps": reps}, tag=f"{reps}")
    for tag, attrs in (("flat", {}), ("axis 1", {"axis": 1}), ("last", {"axis": -1})):
        case("repeat", {"data": n(2, 3)}, {"repeats": 2, **attrs}, tag=tag)
    for tag, axis in (("one", 0), ("two", [0, 2])):
        case("reverse", {"data": n(2, 3, 4)}, {"axis": axis}, tag=tag)
    case("broadcast_to", {"data": n(1, 3, 1)}, {"shape": [2, 0, 4]})
    case("broadcast_axis", {"data": n(1, 3, 1)}, {"axis": [0, 2], "size": [2, 4]}, tag="two")
    case("broadcast_axis", {"data": n(2, 1)}, {"axis": 1, "size": 3}, tag="one")
    both = {"lhs": n(1, 3), "rhs": n(2, 3)}
    case("broadcast_like", both, grad=["lhs"])


def matrices():
    """dot and batch_dot with each transposition."""
    for ta in (False, True):
        for tb in (False, True):
            attrs = {"transpose_a": ta, "transpose_b": tb}
            name = f"{'T' if ta else 'N'}{'T' if tb else 'N'}"
            left, right = (4, 3) if ta else (3, 4), (5, 4) if tb else (4, 5)
            case("dot", {"lhs": n(*left), "rhs": n(*right)}, attrs, tag=name)
            both = {"lhs": n(2, *left), "rhs": n(2, *right)}
            case("batch_dot", both, attrs, tag=name)
    case("dot", {"lhs": n(3, 4), "rhs": n(4, 2)}, tag="float64", dtype="float64")
    case("dot", {"lhs": n(4), "rhs": n(4)}, tag="vectors")
    case("dot", {"lhs": n(2, 3), "rhs": n(3)}, tag="matrix vector", grad=False)
    case("dot", {"lhs": n(2, 3, 4), "rhs": n(4, 5)}, tag="3d 2d")
    case("dot", {"lhs": n(2, 3, 4), "rhs": n(4, 2, 3)}, tag="3d 3d")
    case("batch_dot", {"lhs": n(2, 3, 4), "rhs": n(2, 4, 1)}, tag="float64", dtype="float64")


def picking():
    """Elements by index."""
    index = v([0, 2], [-1, 9])
    for tag, attrs in (("clip", {}), ("wrap", {"mode": "wrap"})):
        both = {"a": n(4, 3), "indices": index}
        case("take", both, attrs, tag=tag, grad=["a"])
        both = {"data": n(4, 3), "index": v(0, 2, -1, 5)}
        case("pick", both, attrs, tag=tag, grad=["data"])
    both = {"a": n(2, 3, 4), "indices": v(0, 2, 2)}
    case("take", both, {"axis": 1}, tag="axis 1", grad=["a"])
    case("take", both, {"axis": -1}, tag="last int32", grad=["a"], dtypes={"indices": "int32"})
    both = {"data": n(4, 3), "index": i(0, 3, 4)}
    case("pick", both, {"keepdims": True}, tag="kept", grad=["data"])
    both = {"data": n(4, 3), "index": i(0, 4, 3)}
    case("pick", both, {"axis": 0}, tag="axis 0", grad=["data"])
    for tag, attrs in (
        ("default", {}),
        ("values", {"on_value": 8.0, "off_value": -1.0}),
        ("int32", {"dtype": "int32"}),
    ):
        case(
            "one_hot", {"indices": v(0, 2, -1, 5, 1.7)}, {"depth": 3, **attrs}, tag=tag, grad=False
        )
    case("one_hot", {"indices": i(0, 4, 2, 3)}, {"depth": 4}, tag="2d", grad=False)


def casting():
    """Other types, and arrays of the same shape."""
    values = v(1.75, -1.75, 100, -3, 0)
    for target in ("float64", "float16", "int32"):
        case("Cast", {"data": values}, {"dtype": target}, tag=target)
    for target in ("int8", "int64", "bool"):
        case("Cast", {"data": values}, {"dtype": target}, tag=target, grad=False)
    case("Cast", {"data": i(0, 99, 5)}, {"dtype": "float32"}, tag="back", dtype="int32", grad=False)
    for op in ("zeros_like", "ones_like"):
        floats(op, {"data": n(2, 3)}, grad=False)
        case(op, {"data": i(0, 9, 2)}, tag="int32", dtype="int32", grad=False)
    for op in ("shape_array", "size_array"):
        case(op, {"data": n(2, 3, 4)}, grad=False)


for enter in (reductions, reshapes, pieces, matrices, picking, casting):
    enter()
