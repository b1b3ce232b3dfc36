"""The native text of a stable sort of 32-bit keys, each with 32 bits beside it.

A pair is a word of 64 bits: the key's code, an unsigned number of the same order, above what goes
with it. `pack` makes the words, `count` and `scatter` are a pass by one digit of the code, the
lowest first, `unpack` takes the words apart. Every function does one task's share of the words; a
task counts its own, so that where each task's words of a digit go is known before they are moved.

A task's block, in words of 64 bits: see `FIELDS`. Codes of numbers x with the bits b:

    floating    b ^ (b < 0 ? ~0 : 1 << 31)      signed 1, top 1 << 31
    int         b ^ 1 << 31                     signed 0, top 1 << 31
    unsigned    b                               signed 0, top 0

and, for the highest first, the complement (flip ~0).
"""

from __future__ import annotations

DIGIT = 11  # bits of a digit
DIGITS = 1 << DIGIT
PASSES = 3
FIELDS = ("source", "dest", "n", "shift", "counts", "beside", "signed", "top", "flip")


def _fields(*names: str) -> str:
    """Loads of what a block holds."""
    lines = []
    for name in names:
        kind = "ptr" if name in ("source", "dest", "counts", "beside") else "i64"
        lines += [
            f"  %{name}.at = getelementptr i64, ptr %b, i64 {FIELDS.index(name)}",
            f"  %{name} = load {kind}, ptr %{name}.at",
        ]
    return "\n".join(lines)


def _function(name: str, fields: tuple[str, ...], before: str, body: str) -> str:
    """A task: `body` for every %i of its share."""
    return f"""
define void @{name}(ptr %b, i64 %task, i64 %tasks) {{
{_fields("n", *fields)}
  %from.all = mul i64 %n, %task
  %low = udiv i64 %from.all, %tasks
  %task.next = add i64 %task, 1
  %to.all = mul i64 %n, %task.next
  %high = udiv i64 %to.all, %tasks
{before}
  br label %head
head:
  %i = phi i64 [%low, %0], [%i.next, %body]
  %more = icmp slt i64 %i, %high
  br i1 %more, label %body, label %done
body:
{body}
  %i.next = add i64 %i, 1
  br label %head
done:
  ret void
}}
"""


_MINE = f"""
  %mine = mul i64 %task, {DIGITS}
  %hist = getelementptr i32, ptr %counts, i64 %mine"""
_CLEAR = f"""
  call void @llvm.memset.p0.i64(ptr %hist, i8 0, i64 {4 * DIGITS}, i1 false)"""
_NUMBERS = """
  %signed32 = trunc i64 %signed to i32
  %top32 = trunc i64 %top to i32
  %flip32 = trunc i64 %flip to i32"""
_WORD = """
  %word.at = getelementptr i64, ptr %source, i64 %i
  %word = load i64, ptr %word.at"""
_PLACE = f"""
  %shifted = lshr i64 %word, %shift
  %digit = and i64 %shifted, {DIGITS - 1}
  %place = getelementptr i32, ptr %hist, i64 %digit
  %seen = load i32, ptr %place
  %after = add i32 %seen, 1
  store i32 %after, ptr %place"""
_PACK = """
  %key.at = getelementptr i32, ptr %source, i64 %i
  %key = load i32, ptr %key.at
  %sign = ashr i32 %key, 31
  %turned = and i32 %sign, %signed32
  %mask = or i32 %turned, %top32
  %code = xor i32 %key, %mask
  %code.flipped = xor i32 %code, %flip32
  %next.at = getelementptr i32, ptr %beside, i64 %i
  %other = load i32, ptr %next.at
  %upper = zext i32 %code.flipped to i64
  %raised = shl i64 %upper, 32
  %lower = zext i32 %other to i64
  %word = or i64 %raised, %lower
  %to = getelementptr i64, ptr %dest, i64 %i
  store i64 %word, ptr %to"""
_UNPACK = """
  %lower = trunc i64 %word to i32
  %next.at = getelementptr i32, ptr %beside, i64 %i
  store i32 %lower, ptr %next.at
  %raised = lshr i64 %word, 32
  %code.flipped = trunc i64 %raised to i32
  %code = xor i32 %code.flipped, %flip32
  %other = xor i32 %code, -1
  %sign = ashr i32 %other, 31
  %turned = and i32 %sign, %signed32
  %mask = or i32 %turned, %top32
  %key = xor i32 %code, %mask
  %to = getelementptr i32, ptr %dest, i64 %i
  store i32 %key, ptr %to"""
_MOVE = """
  %where = zext i32 %seen to i64
  %to = getelementptr i64, ptr %dest, i64 %where
  store i64 %word, ptr %to"""
_ALL = ("signed", "top", "flip", "source", "dest", "beside")

TEXT = "\n".join(
    [
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        _function("pack", (*_ALL, "shift", "counts"), _NUMBERS + _MINE + _CLEAR, _PACK + _PLACE),
        _function("count", ("source", "shift", "counts"), _MINE + _CLEAR, _WORD + _PLACE),
        _function("scatter", ("source", "dest", "shift", "counts"), _MINE, _WORD + _PLACE + _MOVE),
        _function("unpack", _ALL, _NUMBERS, _WORD + _UNPACK),
    ]
)
