"""What code of one level of x86-64 counts on, and what it asks of the machine that loads it."""

from __future__ import annotations

#: a symbol whose address is no place but a number: how many bytes of the last-level cache a process
#: can count on. So machines that differ in it alone share code.
CACHE_BYTES = "gnomon_cache_bytes"

_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
#: features beside those of the first, in LLVM's words (System V ABI for x86-64, section 3.1.1)
LEVELS: dict[str, tuple[str, ...]] = {
    "x86-64": (),
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": _V4,
}
