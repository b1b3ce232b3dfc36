"""What a golden record of an operator says; the tables of them are in make_cases_*.py."""

CASES = []
FLOATS = ("float32", "float64", "float16")


def n(*shape):
    """Normal numbers."""
    return ["n", list(shape)]


def u(low, high, *shape):
    """Uniform numbers."""
    return ["u", list(shape), low, high]


def i(low, high, *shape):
    """Integers from low up to, not including, high."""
    return ["i", list(shape), low, high]


def d(*shape):
    """Distinct numbers, so that nothing ties."""
    return ["d", list(shape)]


def v(*values):
    """These values."""
    return ["v", list(values)]


def case(
    op,
    inputs,
    attrs=None,
    *,
    tag="",
    dtype="float32",
    dtypes=None,
    train=True,
    grad=True,
    heads=None,
    mode="symbol",
    ours=None,
):
    """Enter a record: operator, its inputs by name in order, its parameters.

    `tag` tells records of one operator apart. `dtypes` gives inputs a type of their own. `grad` is
    whether there are gradients, or the names that have one. `heads` are specs of the head gradients
    where normal numbers do not do. `mode` is "update" where inputs are changed in place, and "out"
    where they are no inputs, but written. `ours`
    maps (inputs, heads, outputs, gradients) to gnomon's gradients where MXNet's are at fault.
    """
    record = {
        "id": f"{op}-{tag.strip() or len(CASES)}",
        "op": op,
        "inputs": inputs,
        "attrs": attrs or {},
    }
    if any(known["id"] == record["id"] for known in CASES):
        raise ValueError(f"two records are called {record['id']}")
    record.update(dtype=dtype, dtypes=dtypes or {}, train=train, grad=grad, heads=heads)
    CASES.append({**record, "mode": mode, "ours": ours})


def floats(op, inputs, attrs=None, *, tag="", types=FLOATS, **rest):
    """Enter a record for each floating type."""
    for dtype in types:
        case(op, inputs, attrs, tag=f"{tag}{'-' if tag else ''}{dtype}", dtype=dtype, **rest)
