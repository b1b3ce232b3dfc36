"""The table of docs/extensions.md: every extension, what it gives, and a small example of it.

`python tools/extensions_page.py` writes it anew; tests/shadow/test_page.py holds the page to it.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np

from gnomon import shadow
from gnomon.expr.oracle import evaluate

PAGE = Path(__file__).parent.parent / "docs" / "extensions.md"
BEGIN, END = "<!-- table: tools/extensions_page.py -->\n", "<!-- end of table -->\n"


def tensor(*rows: object, dtype: type = np.float32) -> shadow.Tensor:
    """A tensor of these rows."""
    return shadow.Tensor(np.array(rows, dtype))


NAMES = {
    "v": tensor(1, 2, 3),
    "m": tensor([1, 2, 3], [4, 5, 6]),
    "c": tensor([[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 9], [9, 9]]),
    "one": tensor(7),
    "i": tensor(2, 0, dtype=np.int64),
    "z": tensor(1, 2, 3, 4),
    "w": tensor(0, 1, 2, 0),
    "r": tensor(10, 2),
    "t": tensor([5, 5, 1, 3]),
    "p": tensor([5, 3]),
    "red": shadow.red,
    "shadow": shadow,
}
TITLES = {
    "Broadcasting": """
        broadcast(v, (2, 3), 1)
        broadcast_axis(v, (2, 3), 1)
        broadcast_to(v, (2, 3))
        broadcast_scalar(one, (2, 2))
        broadcast_with_axis(v, 0, 2)
        broadcast_keepdim(reduce_keepdim(red.sum, m, 1), 1, 2)
        repmat(v, 2)""",
    "Reductions": """
        reduce(m, "prod", 0)
        arg_reduce(m, "max", 1)
        reduce_with_axis(red.maximum, m, 1)
        reduce_keepdim(red.minimum, m, 0)
        reduce_except_dim(red.sum, m, 0, 0.5)
        sumall_except_dim(m, 1)
        sum_rows(m)""",
    "Scans": """
        scan(m, "max", 1, reverse=True)
        cumsum(m, 1)
        cumprod(m, 0)
        logcumsumexp(v)""",
    "Moving": """
        reshape(m, (3, 2))
        transpose(m)
        transpose_indices(i, (2, 3), (1, 0))
        swapaxis(m, 0, 1)
        flip(m, 1)
        mirror(m)
        slice(m, 1, 3, 1)
        slice_(m, (0, 1), (1, 3))
        slice_ex(m, (0, 1), (2, 3))
        concat(v, v, 0)
        crop(m, (1, 2), 1, 0)
        pad(m, 0, 1)
        upsampling_nearest(m, 2)
        interpolate(v, 0, 5, True)""",
    "Windows": """
        pool("sum", m, (2, 2), 1)
        unpool("max", t, p, p, (1, 2), (1, 2))
        chpool(red.sum, c, 3)
        ch_unpool("sum", c, c, c, 1)
        unpack_patch2col(c, 2, 1)
        pack_col2patch(unpack_patch2col(c, 2, 1), (3, 2, 2), 2, 1)""",
    "Indices": """
        take(i, v)
        take_grad(i, m, 3)
        pick(m, i)
        mat_choose_row_element(m, i)
        mat_fill_row_element(m, r, i)
        one_hot(i, 3)
        one_hot_encode(i, 3)
        mask(i, m)
        first(m > 1.5, m, r)
        iota((2, 3), 1)
        range(1, 2, 0.5, 2)""",
    "Products": """
        implicit_dot(m, transpose(m))""",
    "Complex numbers": """
        complex_mul_cc(z, w)
        complex_mul_cr(z, r)
        complex_mul_rc(r, z)
        complex_div_cc(z, w)
        complex_div_cr(z, r)
        complex_div_rc(r, w)
        conj(z)
        complex_exchange(z)
        complex_pad_imag(r)
        complex_toreal(z)
        complex_abs_square(z)
        complex_sum_real_imag(z)""",
}


def shown(code: str) -> str:
    """The value of an example, in a line."""
    value = evaluate(eval(code, {**vars(shadow), **NAMES}))
    return " ".join(np.array2string(value, precision=3, separator=" ").split())


def row(code: str) -> str:
    """The line of an example: its code, what the function gives, the value."""
    name = code.partition("(")[0]
    doc = inspect.getdoc(getattr(shadow, name)) or ""
    first = " ".join(doc.partition("\n\n")[0].split()).replace("|", "\\|")
    return f"| `{code}` | {first} | `{shown(code)}` |"


def examples() -> list[str]:
    """The code of every example."""
    return [line.strip() for lines in TITLES.values() for line in lines.strip().splitlines()]


def table() -> str:
    """The sections with their tables."""
    operands = {k: e for k, e in NAMES.items() if isinstance(e, shadow.Tensor)}
    text = ["The operands of the examples:", ""]
    text += ["| | |", "| --- | --- |"]
    text += [f"| `{k}` | `{shown(k)}` |" for k in operands]
    for title, lines in TITLES.items():
        text += ["", f"### {title}", "", "| Example | Gives | Value |", "| --- | --- | --- |"]
        text += [row(line.strip()) for line in lines.strip().splitlines()]
    return "\n".join([*text, "", ""])


def renewed(page: str) -> str:
    """The page with the table of this code."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
