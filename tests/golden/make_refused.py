"""refused.json: which parameters of every operator MXNet refuses, as it parses them."""

import ctypes
import json
from pathlib import Path

import mxnet as mx

NAMES = Path(__file__).parents[2] / "gnomon" / "data" / "mxnet-names.txt"
GOOD = {
    "int": "2",
    "float": "0.5",
    "boolean": "True",
    "Shape": "(2, 2)",
    "tuple of <long>": "(0,)",
    "tuple": "(0.5,)",
}
#: what these need besides
ALSO = {"Pooling": {"kernel": "(2, 2)"}, "_linspace": {"num": "2"}}
MANY = ("add_n", "ElementWiseSum", "khatri_rao")  # which count their inputs
WRONG = {
    "{": ("nonsense", ""),
    "int": ("abc", "1.5"),
    "long": ("abc",),
    "float": ("abc",),
    "double": ("abc",),
    "boolean": ("maybe", "2"),
    "Shape": ("abc", "(a, b)", "(1, 2"),
    "tuple": ("abc", "(a,)"),
}
NEGATIVE = "non-negative"


def operators():
    """The names of all operators, aliases among them."""
    lines = NAMES.read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith("operators:")]
    return line.partition(":")[2].split()


def is_parsed(name, given):
    """Whether an operator takes these parameters."""
    keys, values = ((ctypes.c_char_p * len(given))(*(x.encode() for x in part))
                    for part in (given, given.values()))  # fmt: skip
    handle, made = ctypes.c_void_p(), ctypes.c_void_p()
    mx.base.check_call(mx.base._LIB.NNGetOpHandle(name.encode(), ctypes.byref(handle)))
    count = ctypes.c_uint(len(given))
    create = mx.base._LIB.MXSymbolCreateAtomicSymbol
    return create(handle, count, keys, values, ctypes.byref(made)) == 0


def good(text):
    """A value that a parameter of this type takes."""
    if text.startswith("{"):
        return text[1 : text.index("}")].split(",")[0].strip("' ")
    return next((value for kind, value in GOOD.items() if text.startswith(kind)), "2")


def trials(name):
    """What parameters are given: the needed ones, and each of all wrong or not at all."""
    found = mx.operator.get_operator_arguments(name)
    types = {n: t for n, t in zip(found.names, found.types, strict=True) if "NDArray" not in t}
    needed = {n: good(t) for n, t in types.items() if "required" in t}
    needed.update(ALSO.get(name.removesuffix("_v1"), {}))
    needed.update({"num_args": "2"} if name.endswith(MANY) else {})
    if not is_parsed(name, needed):
        return
    if types:
        yield {**needed, "nonsense": "1"}
    for left in needed:
        yield {n: value for n, value in needed.items() if n != left}
    for param, text in types.items():
        for kind, values in WRONG.items():
            if text.startswith(kind):
                yield from ({**needed, param: value} for value in values)
        if NEGATIVE in text:
            yield {**needed, param: "-1"}


def make(folder) -> None:
    """Write it."""
    found = {}
    for name in operators():
        refused = [given for given in trials(name) if not is_parsed(name, given)]
        if refused:
            found[name] = refused
    lines = (f"{json.dumps(name)}: {json.dumps(given)}" for name, given in found.items())
    (folder / "refused.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{sum(map(len, found.values()))} of {len(found)} operators")
