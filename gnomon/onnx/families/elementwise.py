"""Functions of single elements: one to one by name, with numbers, comparisons, logic, choices."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

from gnomon.onnx.reader import OnnxCall, Reader, dtype_of
from gnomon.onnx.table import Unsupported, pair, reads, writes, writes_as
from gnomon.onnx.writer import Call, Writer

for _name, _onnx in {
    "abs": "Abs",
    "arccos": "Acos",
    "arccosh": "Acosh",
    "arcsin": "Asin",
    "arcsinh": "Asinh",
    "arctan": "Atan",
    "arctanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "negative": "Neg",
    "reciprocal": "Reciprocal",
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "softsign": "Softsign",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}.items():
    pair(_name, _onnx)


@writes("BlockGrad _copy make_loss MakeLoss _contrib_gradientmultiplier", "")
def write_nothing(w: Writer, x: Call) -> str:
    return x.inputs[0]


@writes("amp_cast Cast", "Cast")
def write_cast(w: Writer, x: Call) -> str:
    return w.cast(x.inputs[0], x.out_dtype())


@reads("Identity")
def read_identity(r: Reader, n: OnnxCall) -> Any:
    return n.value(0)


@reads("Dropout")
def read_dropout(r: Reader, n: OnnxCall) -> Any:
    if n.has(2) and n.const(2).any():
        raise Unsupported("training_mode is true: a network is read as it predicts")
    if n.outputs == 1:
        return n.value(0)
    return [n.value(0), r.op("Cast", r.op("ones_like", n.symbol()), dtype="bool")]


@reads("Cast", elementwise=True)
def read_cast(r: Reader, n: OnnxCall) -> Any:
    return cast(r, n.symbol(), dtype_of(n.need("to")).name)


@reads("CastLike", elementwise=True)
def read_cast_like(r: Reader, n: OnnxCall) -> Any:
    return cast(r, n.symbol(), n.dtype(1).name)


def cast(r: Reader, x: Any, dtype: str) -> Any:
    """A symbol as another dtype."""
    return x if r.dtype(x).name == dtype else r.op("Cast", x, dtype=dtype)


# made of several -------------------------------------------------------------------------------


_FORMULAS = {
    "cbrt": "Mul(Sign(x), Pow(Abs(x), 1 / 3))",
    "clip": "Clip(x, a_min, a_max)",
    "degrees": "Mul(x, 180 / pi)",
    "expm1": "Sub(Exp(x), 1)",
    "fix trunc": "Mul(Sign(x), Floor(Abs(x)))",
    "log10": "Mul(Log(x), 1 / log(10))",
    "log1p": "Log(Add(x, 1))",
    "log2": "Mul(Log(x), 1 / log(2))",
    "radians": "Mul(x, pi / 180)",
    "rcbrt": "Reciprocal(Mul(Sign(x), Pow(Abs(x), 1 / 3)))",
    "rint": "Ceil(Sub(x, 0.5))",
    "round": "Mul(Sign(x), Floor(Add(Abs(x), 0.5)))",
    "rsqrt": "Reciprocal(Sqrt(x))",
    "square": "Mul(x, x)",
    "_contrib_quadratic": "Add(Mul(Add(Mul(a, x), b), x), c)",
}


def _written(w: Writer, x: Call, term: ast.expr) -> str:
    """A formula of ONNX's operators on `x`; the rest are numbers, made of parameters by name."""
    match term:
        case ast.Name("x"):
            return x.inputs[0]
        case ast.Call(ast.Name(name), terms) if name[0].isupper():
            return w.op(name, *(_written(w, x, each) for each in terms))
    known = {"log": math.log, "pi": math.pi, **{name: getattr(x.op, name) for name in x.op.fields}}
    return w.const(eval(ast.unparse(term), known), x.dtype())


def _write_formula(names: str, formula: str) -> None:
    tree = ast.parse(formula, mode="eval").body
    used = dict.fromkeys(re.findall(r"[A-Z]\w+", formula)[::-1])
    writes(names, " ".join(used))(lambda w, x: _written(w, x, tree))


for _names, _formula in _FORMULAS.items():
    _write_formula(_names, _formula)


@reads("Round", elementwise=True)
def read_round(r: Reader, n: OnnxCall) -> Any:
    """Halves go to the even neighbour: twice the rounding of half of it, where it is a half."""
    x = n.symbol()
    even = r.op("_mul_scalar", r.op("round", r.op("_mul_scalar", x, scalar=0.5)), scalar=2.0)
    floor = r.op("floor", x)
    half = r.op("_equal_scalar", r.op("elemwise_sub", x, floor), scalar=0.5)
    return r.op("where", half, even, r.op("round", x))


@reads("Clip", elementwise=True)
def read_clip(r: Reader, n: OnnxCall) -> Any:
    x, low, high = n.symbol(), n.attr("min"), n.attr("max")
    for k, word in ((1, "_maximum"), (2, "_minimum")):
        bound = n.number(k) if n.has(k) else low if k == 1 else high
        if bound is not None:
            x = r.op(f"{word}_scalar", x, scalar=bound)
        elif n.has(k):
            x = r.op(f"broadcast{word}", x, n.symbol(k))
    return x if x is not n.symbol() else n.value(0)


pair("hard_sigmoid", "HardSigmoid", alpha=("alpha", 0.2), beta=("beta", 0.5))


@writes("smooth_l1", "Abs Mul Sub Less Where")
def write_smooth_l1(w: Writer, x: Call) -> str:
    square, dtype = x.op.scalar**2, x.dtype()
    size = w.op("Abs", *x.inputs)
    near = w.op("Mul", w.op("Mul", size, size), w.const(square / 2, dtype))
    far = w.op("Sub", size, w.const(0.5 / square, dtype))
    return w.op("Where", w.op("Less", size, w.const(1 / square, dtype)), near, far)


@writes("_contrib_div_sqrt_dim", "Div")
def write_div_sqrt_dim(w: Writer, x: Call) -> str:
    size = x.shape()[-1]
    if not isinstance(size, int):
        raise Unsupported("the size of its last axis must be fixed")
    return w.op("Div", *x.inputs, w.const(math.sqrt(size), x.dtype()))


# two operands ----------------------------------------------------------------------------------

# ONNX's operator -> the forms here: of two tensors, with a number, with a number on the left
_BINARY = {
    "Add": ("add", "plus", ""),
    "Sub": ("sub", "minus", "rminus"),
    "Mul": ("mul", "mul", ""),
    "Div": ("div", "div", "rdiv"),
    "Pow": ("power", "power", "rpower"),
    "Max": ("maximum", "maximum", ""),
    "Min": ("minimum", "minimum", ""),
}
_COMPARE = {
    "Equal": ("equal", "equal"),
    "Greater": ("greater", "lesser"),
    "GreaterOrEqual": ("greater_equal", "lesser_equal"),
    "Less": ("lesser", "greater"),
    "LessOrEqual": ("lesser_equal", "greater_equal"),
}
_LOGIC = {"And": "and", "Or": "or", "Xor": "xor"}
_PLAIN = {"add": "elemwise_add _grad_add", "sub": "elemwise_sub", "mul": "elemwise_mul"}
_PLAIN["div"] = "elemwise_div"


def operands(w: Writer, x: Call, reverse: bool) -> tuple[str, str]:
    """The two operands of an operator of two tensors, or of one and a number."""
    if len(x.inputs) == 2:
        return x.inputs[0], x.inputs[1]
    number = w.const(x.op.scalar, x.dtype())
    return (number, x.inputs[0]) if reverse else (x.inputs[0], number)


def _write_binary(onnx: str, reverse: bool = False) -> Any:
    def write(w: Writer, x: Call) -> str:
        _whole(x)
        return w.op(onnx, *operands(w, x, reverse))

    return write


def _whole(x: Call) -> None:
    """A number that is no integer cannot be one of an integer tensor."""
    scalar = getattr(x.op, "scalar", 0)
    if x.out_dtype().kind != "f" and scalar != int(scalar):
        raise Unsupported(f"the number {scalar} with a tensor of {x.dtype()}")


for _onnx, (_word, _scalar, _left) in _BINARY.items():
    _names = f"broadcast_{_word} {_PLAIN.get(_word, '_' + _word)} _{_scalar}_scalar"
    writes(_names, _onnx)(_write_binary(_onnx))
    if _left:
        writes(f"_{_left}_scalar", _onnx)(_write_binary(_onnx, reverse=True))


def combine(r: Reader, n: OnnxCall, forms: tuple[str, str, str]) -> Any:
    """Two inputs joined: one of them as a number where it is a constant of one element."""
    word, scalar, left = forms
    for k, form in ((1, scalar), (0, left or scalar)):
        number = n.number(k)
        if number is not None and n.value(1 - k).array is None:
            if n.dtype(k).kind == "b":
                break
            return r.op(f"_{form}_scalar", n.symbol(1 - k), scalar=number)
    return r.op(f"broadcast_{word}", n.symbol(0), n.symbol(1))


def _read_binary(forms: tuple[str, str, str]) -> Any:
    def read(r: Reader, n: OnnxCall) -> Any:
        if n.attr("broadcast", 0) or n.attr("axis") is not None:
            raise Unsupported("the way of broadcasting of opset 6")
        if len(n.values) == 2:
            return combine(r, n, forms)
        result = n.symbol(0)
        for other in n.symbols()[1:]:
            result = r.op(f"broadcast_{forms[0]}", result, other)
        return result

    return read


for _onnx, _forms in _BINARY.items():
    if _onnx != "Pow":
        reads(_onnx, elementwise=True)(_read_binary(_forms))


@reads("Pow", elementwise=True)
def read_pow(r: Reader, n: OnnxCall) -> Any:
    """The result has the dtype of the base, whatever that of the exponent is."""
    dtype = n.dtype(0)
    if n.number(1) is not None and dtype.kind == "f":
        return r.op("_power_scalar", n.symbol(0), scalar=float(n.number(1)))
    if dtype is n.dtype(1):
        return combine(r, n, _BINARY["Pow"])
    wide = "float64" if dtype.kind != "f" else dtype.name
    base, exponent = cast(r, n.symbol(0), wide), cast(r, n.symbol(1), wide)
    return cast(r, r.op("broadcast_power", base, exponent), dtype.name)


@writes("broadcast_mod _mod _mod_scalar _rmod_scalar", "Div Floor Mul Sub Equal Where")
def write_mod(w: Writer, x: Call) -> str:
    """The remainder has the sign of the divisor, and is 0 for a divisor of 0."""
    a, b = operands(w, x, x.op.name == "_rmod_scalar")
    if x.dtype().kind != "f":
        return w.op("Mod", a, b)
    whole = w.op("Mul", w.op("Floor", w.op("Div", a, b)), b)
    zero = w.const(0, x.dtype())
    return w.op("Where", w.op("Equal", b, zero), zero, w.op("Sub", a, whole))


@reads("Mod", elementwise=True)
def read_mod(r: Reader, n: OnnxCall) -> Any:
    """By 0 the remainder is NaN; MXNet's is 0."""
    a, b = n.symbol(0), n.symbol(1)
    if n.attr("fmod", 0):
        sizes = r.op("broadcast_mod", r.op("abs", a), r.op("abs", b))
        found = r.op("broadcast_mul", sizes, r.op("sign", a))
    else:
        found = r.op("broadcast_mod", a, b)
    if n.dtype().kind != "f":
        return found
    return r.op("broadcast_add", found, r.op("broadcast_div", r.op("zeros_like", b), b))


@writes("broadcast_hypot _hypot _hypot_scalar", "Mul Add Sqrt")
def write_hypot(w: Writer, x: Call) -> str:
    a, b = operands(w, x, False)
    return w.op("Sqrt", w.op("Add", w.op("Mul", a, a), w.op("Mul", b, b)))


writes_as("add_n", "Sum")


@reads("Sum", elementwise=True)
def read_sum(r: Reader, n: OnnxCall) -> Any:
    return _read_binary(_BINARY["Add"])(r, n) if len(n.values) > 1 else n.value(0)


@reads("Mean", elementwise=True)
def read_mean(r: Reader, n: OnnxCall) -> Any:
    if len(n.values) == 1:
        return n.value(0)
    total = _read_binary(_BINARY["Add"])(r, n)
    return r.op("_div_scalar", total, scalar=float(len(n.values)))


# comparisons and logic: ONNX has truth values, MXNet numbers that are 0 or 1 --------------------


def _write_compare(onnx: str, reverse: bool = False) -> Any:
    def write(w: Writer, x: Call) -> str:
        return w.cast(w.op(onnx, *operands(w, x, reverse)), x.out_dtype())

    return write


def _read_compare(word: str, mirrored: str) -> Any:
    def read(r: Reader, n: OnnxCall) -> Any:
        return cast(r, combine(r, n, (word, word, mirrored)), "bool")

    return read


for _onnx, (_word, _mirrored) in _COMPARE.items():
    _names = f"broadcast_{_word} _{_word} _{_word}_scalar"
    writes(_names, f"{_onnx} Cast")(_write_compare(_onnx))
    reads(_onnx, elementwise=True)(_read_compare(_word, _mirrored))


@writes("broadcast_not_equal _not_equal _not_equal_scalar", "Equal Not Cast")
def write_not_equal(w: Writer, x: Call) -> str:
    return w.cast(w.op("Not", w.op("Equal", *operands(w, x, False))), x.out_dtype())


def truth(w: Writer, name: str) -> str:
    """A tensor as truth values: whatever is not 0."""
    return w.cast(name, "bool")


def _write_logic(onnx: str) -> Any:
    def write(w: Writer, x: Call) -> str:
        a, b = (truth(w, name) for name in operands(w, x, False))
        return w.cast(w.op(onnx, a, b), x.out_dtype())

    return write


def _read_logic(word: str) -> Any:
    def read(r: Reader, n: OnnxCall) -> Any:
        return cast(r, r.op(f"broadcast_logical_{word}", n.symbol(0), n.symbol(1)), "bool")

    return read


for _onnx, _word in _LOGIC.items():
    _name = f"logical_{_word}"
    writes(f"broadcast_{_name} _{_name} _{_name}_scalar", f"Cast {_onnx}")(_write_logic(_onnx))
    reads(_onnx, elementwise=True)(_read_logic(_word))


@writes("logical_not", "Cast Not")
def write_not(w: Writer, x: Call) -> str:
    return w.cast(w.op("Not", truth(w, x.inputs[0])), x.out_dtype())


@reads("Not", elementwise=True)
def read_not(r: Reader, n: OnnxCall) -> Any:
    return cast(r, r.op("logical_not", n.symbol()), "bool")


@writes("where", "Cast Where Reshape")
def write_where(w: Writer, x: Call) -> str:
    condition = truth(w, x.inputs[0])
    if x.rank(0) != x.rank(1):  # one for each row
        shape = [-1] + [1] * (x.rank(1) - 1)
        condition = w.op("Reshape", condition, w.const(shape))
    return w.op("Where", condition, *x.inputs[1:])


@reads("Where", elementwise=True)
def read_where(r: Reader, n: OnnxCall) -> Any:
    """The operator here takes equal shapes: what is smaller is stretched by what is added to 0."""
    condition, a, b = n.symbols()
    shapes = [r.shape(s) for s in (condition, a, b)]
    if shapes[0] == shapes[1] == shapes[2] and shapes[0] and -1 not in shapes[0]:
        return r.op("where", condition, a, b)
    dtype = r.dtype(a).name
    if dtype == "bool":
        raise Unsupported("a choice of truth values of several shapes")
    nothing = r.op("zeros_like", a)
    for other in (b, condition):
        nothing = r.op("broadcast_add", nothing, cast(r, r.op("zeros_like", other), dtype))
    mask = r.op("broadcast_add", cast(r, condition, dtype), nothing)
    wide = (r.op("broadcast_add", x, nothing) for x in (a, b))
    return r.op("where", mask, *wide)


@reads("IsNaN", elementwise=True)
def read_is_nan(r: Reader, n: OnnxCall) -> Any:
    return cast(r, r.op("_not_equal", n.symbol(), n.symbol()), "bool")


@reads("IsInf", elementwise=True)
def read_is_inf(r: Reader, n: OnnxCall) -> Any:
    x = n.symbol()
    up, down = n.attr("detect_positive", 1), n.attr("detect_negative", 1)
    if not up and not down:
        return cast(r, r.op("zeros_like", x), "bool")
    x = r.op("abs", x) if up and down else x if up else r.op("negative", x)
    return cast(r, r.op("_equal_scalar", x, scalar=math.inf), "bool")


@reads("BitShift BitwiseAnd BitwiseOr BitwiseXor BitwiseNot")
def read_bits(r: Reader, n: OnnxCall) -> Any:
    raise Unsupported("MXNet has no operators of bits")
