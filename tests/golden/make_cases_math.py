"""Records of arithmetic, mathematics and comparison, with and without broadcasting."""

from make_case import case, d, floats, i, n, u, v

NAN, INF = float("nan"), float("inf")
ANY, POSITIVE, UNIT, BEYOND = (-3, 3), (0.1, 4), (-0.9, 0.9), (1.1, 4)

UNARY = {
    **dict.fromkeys("relu sigmoid softsign erf exp expm1 square abs negative".split(), ANY),
    **dict.fromkeys("sin cos tan arctan sinh cosh tanh arcsinh degrees radians".split(), ANY),
    **dict.fromkeys("log log10 log2 log1p sqrt rsqrt cbrt rcbrt gamma gammaln".split(), POSITIVE),
    **dict.fromkeys("arcsin arccos arctanh erfinv".split(), UNIT),
    **dict.fromkeys("reciprocal".split(), POSITIVE),
    "arccosh": BEYOND,
}
STEPS = "sign round rint ceil floor trunc fix logical_not".split()
EDGES = {
    "relu": v(0.0, -0.0, INF, -INF),
    "sigmoid": v(0.0, 100.0, -100.0, INF, -INF),
    "tanh": v(0.0, 50.0, -50.0, INF, -INF),
    "exp": v(0.0, 88.0, -104.0, INF, -INF, NAN),
    "log": v(0.0, 1.0, -1.0, INF, NAN),
    "sqrt": v(0.0, 1.0, -1.0, INF),
    "rsqrt": v(0.0, 1.0, INF),
    "cbrt": v(1.0, -8.0, 27.0),
    "abs": v(0.0, -0.0, -INF),
    "sign": v(0.0, -0.0, 5.0, -5.0),
    "reciprocal": v(0.0, 2.0, INF),
    "gamma": v(2.5, -0.5, 5.0),
    "gammaln": v(1.0, 2.0, -0.5, 30.0),
    "expm1": v(1e-8, -1e-8, 0.0),
    "log1p": v(1e-8, -1e-8, 0.0, -1.0),
    "erf": v(0.0, 1e-8, 5.0, -5.0),
}


def unary():
    """Inside the domain, at its edges, and in the other types."""
    for op, (low, high) in UNARY.items():
        case(op, {"data": u(low, high, 3, 7)}, tag="float32")
        case(op, {"data": u(low, high, 5)}, tag="float64", dtype="float64")
    for op in ("relu", "exp", "log", "tanh", "sigmoid", "sqrt", "square"):
        case(op, {"data": u(0.1, 2, 5)}, tag="float16", dtype="float16")
    for op in STEPS:
        points = v(-2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 2.4, -2.6, 7.0)
        case(op, {"data": points}, tag="steps", grad=op != "logical_not")
        case(op, {"data": u(-4, 4, 2, 3)}, tag="float64", dtype="float64", grad=op != "logical_not")
    for op, points in EDGES.items():
        case(op, {"data": points}, tag="edges")


def scalars():
    """An array and a number."""
    data = {"data": u(0.5, 3, 3, 4)}
    for op in "_plus _minus _rminus _mul _div _rdiv _power _rpower _mod _rmod _hypot".split():
        case(f"{op}_scalar", data, {"scalar": 1.75}, tag="float32")
        case(f"{op}_scalar", data, {"scalar": 1.75}, tag="float64", dtype="float64")
    for op in "_plus _mul _div".split():
        case(f"{op}_scalar", data, {"scalar": 1.75}, tag="float16", dtype="float16")
    for op in ("_maximum_scalar", "_minimum_scalar"):
        case(op, {"data": v(1.0, 2.0, 3.0, NAN)}, {"scalar": 2.0}, tag="ties")
    for op in "_equal _not_equal _greater _greater_equal _lesser _lesser_equal".split():
        case(f"{op}_scalar", {"data": i(0, 3, 3, 4)}, {"scalar": 1.0}, tag="float32")
    for op in "_logical_and _logical_or _logical_xor".split():
        for scalar in (0.0, 2.0):
            case(f"{op}_scalar", {"data": i(0, 2, 5)}, {"scalar": scalar}, tag=f"{scalar}")
    whole = {"data": v(7, -7, 0, 3)}
    for op in "_plus _minus _mul _div _mod".split():
        case(f"{op}_scalar", whole, {"scalar": 2.0}, tag="int32", dtype="int32", grad=False)
    for scalar in (3.0, -3.0):
        signs = {"data": v(7.0, -7.0, 6.0, 0.5)}
        case("_mod_scalar", signs, {"scalar": scalar}, tag=f"sign {scalar}")


PAIRS = {
    "same": ([3, 4], [3, 4]),
    "row": ([3, 4], [1, 4]),
    "column": ([3, 1], [3, 4]),
    "both": ([2, 1, 4], [1, 3, 1]),
    "scalar": ([1, 1], [3, 4]),
    "ranks": ([2, 3, 4], [4]),
}


def pair(op, tag, left, right, low=0.5, high=3, **rest):
    """One binary record on uniform numbers."""
    case(op, {"lhs": u(low, high, *left), "rhs": u(low, high, *right)}, tag=tag, **rest)


def binary():
    """Elementwise and broadcast."""
    for op in ("elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div"):
        for dtype in ("float32", "float64", "float16"):
            pair(op, dtype, [3, 5], [3, 5], dtype=dtype)
    for op in ("_maximum", "_minimum", "_power", "_mod", "_hypot"):
        pair(op, "float32", [3, 5], [3, 5])
    for op in "add sub mul div power maximum minimum hypot mod".split():
        for tag, (left, right) in PAIRS.items():
            if tag in ("same", "both", "ranks") or op in ("add", "mul", "div"):
                pair(f"broadcast_{op}", tag, left, right)
        pair(f"broadcast_{op}", "float64", [2, 1], [1, 3], dtype="float64")
    for op in ("maximum", "minimum"):
        ties = {"lhs": v(1.0, 2, 3, NAN), "rhs": v(1.0, 3, 2, 1)}
        case(f"broadcast_{op}", ties, tag="ties", grad=False)
        ties = {"lhs": i(0, 3, 4, 5), "rhs": i(0, 3, 1, 5)}
        case(f"broadcast_{op}", ties, tag="ties with gradient")
    for op in "equal not_equal greater greater_equal lesser lesser_equal".split():
        inputs = {"lhs": i(0, 3, 3, 4), "rhs": i(0, 3, 1, 4)}
        case(f"broadcast_{op}", inputs, tag="float32")
        case(f"broadcast_{op}", inputs, tag="int32", dtype="int32", grad=False)
        case(f"_{op}", {"lhs": i(0, 3, 6), "rhs": i(0, 3, 6)}, tag="float32")
    for op in "logical_and logical_or logical_xor".split():
        case(f"broadcast_{op}", {"lhs": i(0, 2, 3, 4), "rhs": i(0, 2, 3, 1)}, tag="float32")
    signs = {"lhs": v(7, -7, 7, -7, 0), "rhs": v(2, 2, -2, -2, 3)}
    for op in "add sub mul div mod maximum power".split():
        whole = {**signs, "rhs": v(2, 2, 3, 3, 3)} if op == "power" else signs
        case(f"broadcast_{op}", whole, tag="int32", dtype="int32", grad=False)
    case("broadcast_mod", signs, tag="signs")
    case("add_n", {"arg0": n(2, 3), "arg1": n(2, 3), "arg2": n(2, 3)}, tag="three")
    case("add_n", {"arg0": n(2, 3)}, tag="one")


def choosing():
    """clip and where."""
    edge = v(-1.0, 1.0, 0.0, 2.0, -2.0)
    floats("clip", {"data": n(3, 4)}, {"a_min": -0.5, "a_max": 0.8})
    case("clip", {"data": edge}, {"a_min": -1.0, "a_max": 1.0}, tag="edges")
    bounds = {"a_min": 2.0, "a_max": 4.0}
    case("clip", {"data": i(0, 9, 7)}, bounds, tag="int32", dtype="int32", grad=False)
    three = {"condition": i(0, 2, 3, 4), "x": n(3, 4), "y": n(3, 4)}
    floats("where", three, grad=["x", "y"])
    case("where", {**three, "condition": v(0.0, 1.0, -2.0)}, tag="rows", grad=["x", "y"])
    whole = {"condition": "int32"}
    case("where", three, tag="int32 condition", dtypes=whole, grad=["x", "y"])
    odd = {"condition": v(0.0, NAN, 0.5), "x": d(3), "y": d(3)}
    case("where", odd, tag="nan is true", grad=["x", "y"])


for enter in (unary, scalars, binary, choosing):
    enter()
