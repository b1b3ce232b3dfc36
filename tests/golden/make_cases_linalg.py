"""Records of nd.linalg: values and gradients."""

import numpy as np
from make_case import case, n, v

BOTH = ("float32", "float64")


def spd(size, batch=2):
    """Symmetric positive definite matrices."""
    root = np.random.RandomState(size).standard_normal((batch, size, size))
    return v(*np.round(root @ root.transpose(0, 2, 1) + size * np.eye(size), 3).tolist())


def lower(size, batch=2):
    """Lower triangular matrices with a large diagonal."""
    whole = np.tril(np.random.RandomState(size).standard_normal((batch, size, size)))
    return v(*np.round(whole + 3 * np.eye(size), 3).tolist())


def both(op, inputs, attrs=None, tag=""):
    """In single and in double precision."""
    for dtype in BOTH:
        case(f"_linalg_{op}", inputs, attrs, tag=f"{tag} {dtype}", dtype=dtype)


both("potrf", {"A": spd(3)})
both("potri", {"A": lower(3)})
both("inverse", {"A": spd(3)})
both("det", {"A": spd(3)})
both("det", {"A": v([0.0, 2.0], [1.0, 0.5])}, tag="one")
both("slogdet", {"A": spd(3)})
both("sumlogdiag", {"A": spd(3)})
both("gelqf", {"A": n(2, 3, 5)})
both("syevd", {"A": spd(3)})
both("syevd", {"A": spd(4, 1)}, tag="four")
for transpose in (False, True):
    for rightside in (False, True):
        for low in (False, True):
            attrs = {"transpose": transpose, "rightside": rightside, "lower": low, "alpha": 1.5}
            inputs = {"A": spd(3), "B": n(2, 4, 3) if rightside else n(2, 3, 4)}
            for op in ("trmm", "trsm"):
                case(f"_linalg_{op}", inputs, attrs, tag=f"{transpose} {rightside} {low}",
                     dtype="float64")  # fmt: skip
    case(
        "_linalg_syrk", {"A": n(2, 3, 4)}, {"transpose": transpose, "alpha": 2}, tag=f"{transpose}"
    )
    attrs = {"transpose_a": transpose, "alpha": 0.5}
    shape = (2, 4, 3) if transpose else (2, 3, 4)
    case("_linalg_gemm2", {"A": n(*shape), "B": n(2, 4, 5)}, attrs, tag=f"{transpose}")
case("_linalg_gemm2", {"A": n(3, 2, 4), "B": n(4, 2, 5)}, {"axis": 0}, tag="axis")
attrs = {"transpose_b": True, "alpha": 2, "beta": -1}
case("_linalg_gemm", {"A": n(2, 3, 4), "B": n(2, 5, 4), "C": n(2, 3, 5)}, attrs)
for offset in (-1, 0, 1):
    for op, shape in (("extractdiag", (2, 3, 3)), ("makediag", (2, 3))):
        case(f"_linalg_{op}", {"A": n(*shape)}, {"offset": offset}, tag=f"{offset}")
    for low in (False, True):
        attrs = {"offset": offset, "lower": low}
        for op, shape in (("extracttrian", (2, 4, 4)), ("maketrian", (2, 6))):
            case(f"_linalg_{op}", {"A": n(*shape)}, attrs, tag=f"{offset} {low}")
