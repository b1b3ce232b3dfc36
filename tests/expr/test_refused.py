"""Python that no operator can be made of: every kind is refused at its line, in words."""

from __future__ import annotations

import functools
import linecache
import math
import types

import numpy as np
import pytest

from gnomon.expr.functions.frontend import op
from gnomon.expr.source import OperatorError

TABLE = np.zeros(3)
LATER = 3.0

# source of one function each, the line that is wrong, and what is said about it
REFUSED = {
    "while": ("def f(x):\n    while x > 0:\n        x = x - 1\n    return x", 2, "a while loop"),
    "try": (
        "def f(x):\n    try:\n        return x\n    except ValueError:\n        return 0",
        2,
        "try",
    ),
    "with": ("def f(x):\n    with x:\n        return x", 2, "a with block"),
    "raise": ("def f(x):\n    raise ValueError", 2, "raise"),
    "assert": ("def f(x):\n    assert x > 0\n    return x", 2, "assert"),
    "del": ("def f(x):\n    del x\n    return 1", 2, "del"),
    "match": (
        "def f(x):\n    match x:\n        case 1:\n            return 2\n    return x",
        2,
        "match",
    ),
    "yield": ("def f(x):\n    yield x", 2, "yield"),
    "global": ("def f(x):\n    global LATER\n    return x", 2, "global"),
    "import": ("def f(x):\n    import math\n    return x", 2, "an import"),
    "class": ("def f(x):\n    class C:\n        pass\n    return x", 2, "a class"),
    "function": (
        "def f(x):\n    def g(y):\n        return y\n    return g(x)",
        2,
        "a function inside",
    ),
    "lambda": ("def f(x):\n    g = lambda y: y\n    return g(x)", 2, "a lambda"),
    "async": ("async def f(x):\n    return x", 1, "an async function"),
    "print": (
        "def f(x):\n    print(x)\n    return x",
        2,
        "an expression whose value nothing takes",
    ),
    "walrus": ("def f(x):\n    return (y := x) * y", 2, "the operator :="),
    "comprehension": ("def f(x):\n    return sum([x for _ in (1, 2)])", 2, "a comprehension"),
    "string": ("def f(x):\n    return f'{x}'", 2, "a string"),
    "complex": ("def f(x):\n    return x * 2j", 2, "2j, which is no number"),
    "none": ("def f(x):\n    return None", 2, "None, which is no number"),
    "tuple": ("def f(x):\n    return x, x", 2, "a tuple"),
    "is": ("def f(x):\n    return 1 if x is None else x", 2, "the comparison is"),
    "not in": ("def f(x):\n    return x not in (1, 2)", 2, "the comparison not in"),
    "shift": ("def f(x):\n    return x << 2.0", 2, "<< takes integers, got a float"),
    "mask": ("def f(x):\n    return (x & 1) * 0.5", 1, "& of integers beside what is of floats"),
    "matmul": ("def f(x):\n    return x @ x", 2, "the operator @"),
    "invert": ("def f(x):\n    return x + ~0.5", 2, "bad operand type for unary ~"),
    "star": ("def f(x):\n    return max(*x)", 2, "a call with keywords or *"),
    "unpacking": ("def f(x):\n    a, *b = x, 2\n    return a", 2, "an assignment to anything but"),
    "element": ("def f(x):\n    x[0] += 1\n    return x", 2, "an assignment to no name"),
    "array": ("def f(x):\n    return x * TABLE", 2, "array([0., 0., 0.]), which is no number"),
    "element of one": ("def f(x):\n    return x * TABLE[0]", 2, "indexing"),
    "array asked": (
        "def f(x):\n    if TABLE:\n        return x\n    return 1",
        2,
        "which is no number",
    ),
    "array chosen": ("def f(x):\n    return x if TABLE else 1", 2, "which is no number"),
    "recursion": ("def f(x):\n    return f(x - 1) if x > 0 else 0", 2, "f in f itself"),
    "hidden global": (
        "def f(x):\n    LATER += x\n    return LATER",
        2,
        "LATER, which is not set yet",
    ),
    "random": ("def f(x):\n    return x * np.random.rand()", 2, "a call of rand"),
    "argument called": ("def f(x):\n    return x(1)", 2, "a call of a number"),
    "method": ("def f(x):\n    return x.sum()", 2, "the attribute sum"),
    "reduction": ("def f(x):\n    return np.sum(x)", 2, "a call of sum"),
    "too few": ("def f(x):\n    return math.atan2(x)", 2, "arctan2 takes 2 arguments, got 1"),
    "too many": ("def f(x):\n    return np.exp(x, x, x)", 2, "exp takes 1 arguments, got 3"),
    "domain": ("def f(x):\n    return x * math.sqrt(-1)", 2, "cannot be compiled in an operator"),
    "keyword only": ("def f(x, *, y):\n    return x", 1, "arguments with defaults"),
    "keywords": ("def f(x, **y):\n    return x", 1, "arguments with defaults"),
}


def written(text: str, name: str = "f", file: str = "<written>") -> types.FunctionType:
    """The function of a source text, as if it stood in a file."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict = {"TABLE": TABLE, "LATER": LATER, "np": np, "math": math, "__name__": "written"}
    exec(compile(text + "\n", file, "exec", dont_inherit=True), space)
    return space[name]


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_operator_is_refused_at_its_line(case):
    text, line, words = REFUSED[case]
    with pytest.raises(OperatorError) as caught:
        op(written(text, file=f"<{case}>"))
    message = str(caught.value)
    assert message.startswith(f"<{case}>, line {line}: ")
    assert words in message
    assert message.splitlines()[1].strip() == text.splitlines()[line - 1].strip()
    assert message.splitlines()[2].strip() == "^"


class Holder:
    def method(self, x):
        return x

    @staticmethod
    @op
    def doubled(x):
        return x * 2


@pytest.mark.parametrize(
    "thing",
    [abs, math.sin, np.exp, Holder, Holder().method, functools.partial(max, 1), 3, "x", "exp"],
    ids=lambda thing: type(thing).__name__,
)
def test_what_is_no_python_function_is_refused(thing):
    with pytest.raises(OperatorError, match="expected a Python function of scalars"):
        op(thing)


def test_decorators_stand_above():
    @functools.lru_cache
    def cached(x):
        return x

    def wrapper(function):
        return functools.wraps(function)(lambda *args: function(*args) + 1)

    @wrapper
    def wrapped(x):
        return x

    with pytest.raises(OperatorError, match="expected a Python function"):
        op(cached)
    with pytest.raises(OperatorError, match=r"line \d+: wrapped is what another decorator made"):
        op(wrapped)
    made = op(lambda x: x + 1)
    assert op(op(made)) is made
    assert Holder.doubled(2.0) == 4.0


def test_a_file_that_has_changed_is_not_read_for_another():
    function = written("def f(x):\n    return x + 1", file="<changed>")
    written("def f(x):\n    return x - 1", file="<changed>")
    with pytest.raises(OperatorError, match="does not match what runs; has the file changed"):
        op(function)


def test_numbers_are_computed_once_and_by_functions_of_numbers_only():
    text = (
        "def f(x):\n    return x * math.factorial(3) + np.float32(2) * np.sqrt(4.0) + float('inf')"
    )
    assert op(written(text, file="<numbers>"))(1.0) == math.inf
    text = "def f(x):\n    return min(x, float('inf')) * int(2.7) * bool(3) * max(1, 2)"
    assert op(written(text, file="<limits>"))(1.5) == 6.0


def test_doubtful_source_is_not_complained_of_again(recwarn):
    text = "def f(x):\n    return x * 2\ng = lambda: (3)(4)"
    linecache.cache["<doubtful>"] = (len(text), None, text.splitlines(keepends=True), "<doubtful>")
    space: dict = {}
    with pytest.warns(SyntaxWarning, match="not callable"):
        exec(compile(text, "<doubtful>", "exec", dont_inherit=True), space)
    assert op(space["f"])(2.0) == 4.0
    assert not list(recwarn)
