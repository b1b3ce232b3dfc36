"""What a target machine has, as a record; the printers of code ask it, the planner need not."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gnomon.base import ParamError, complaint
from gnomon.code import math
from gnomon.expr.term import Term, mask_of
from gnomon.ground.levels import LEVELS
from gnomon.ground.record import record
from gnomon.plan.ir import Body, Fold, Let, Phase, Put, every
from gnomon.plan.terms import postorder

COMPARED = 4  # bytes: comparing as many indices as a register has bytes would take eight of them
ALONE = 16  # results written alone may be larger, by this factor, until caches do not pay
MANY = 4  # transcendental functions: a kernel of more takes long to compile


@record()
class Target:
    """A machine: LLVM's words for it, and what decides which code is written for it.

    `has` names what takes one instruction there, and is written out elsewhere: "fma", "float16"
    (conversion to and from float32), "bfloat16" (rounding float32 to it), "scalb" (x * 2^n),
    "saturate" (floats to integers, the ends kept and NaN as 0).
    """

    triple: str
    cpu: str
    vector_bytes: int  # of its widest registers
    features: str = ""  # beyond those of `cpu`, as "+avx2,+fma"
    mask_bytes: int = 0  # of the smallest element that masked loads and stores take; 0: none
    has: frozenset[str] = frozenset()
    streams: bool = False  # whether large results are stored past the caches
    segment: int = 1000  # statements that one function may have: compilers are not linear

    def lanes(
        self, phase: Phase, repeated: Collection[int] = (), known: Collection[int] = ()
    ) -> int:
        """How many elements of the widest dtype of a phase a register holds.

        The Terms `repeated`, by id, have half as many lanes as others, or fewer; those `known` are
        not computed for lanes.
        """
        bodies = (phase.entry, phase.row, phase.body)
        terms = [t for body in bodies for t in postorder(_roots(body))]
        return max(self.vector_bytes // max(_sizes(terms, repeated, known), default=4), 2)

    def unroll(self, phase: Phase) -> int:
        """Registers that a value takes: several where little is to be done, for more in flight."""
        return _unroll(*_work([phase.row, phase.body]))

    def fold_lanes(self, fold: Fold) -> tuple[int, int]:
        """The elements that a register holds in a fold along a row, and those of a step."""
        own = mask_of(fold.vars)
        terms = postorder([a for term in fold.terms for a in term.args])
        sizes = _sizes(t for t in terms if t.free & own)
        short = max(self.vector_bytes // max(sizes, default=4), 2)
        return short, short * _unroll(*_work(fold.bodies))

    def calls(self, fold: Fold) -> bool:
        """Whether a step of a fold computes a transcendental function."""
        return _work(fold.bodies)[0] > 0

    def streamed(self, phase: Phase, lanes: int) -> Put | None:
        """The store of a phase that may go past the caches, `lanes` elements at a time.

        One of what is not read, and is written so fast that memory is what it waits for. A fill,
        which reads nothing, takes 0.92 of the time through the caches: processors know it when
        they see it.
        """
        put = phase.body[-1] if phase.body else None
        if not self.streams or phase.inner is None or phase.columns or phase.turns:
            return None
        functions, others = _work([phase.row, phase.body])
        if not isinstance(put, Put) or put.saver != "saveto" or functions > 2 or others > 40:
            return None
        roots = [root for body in (phase.entry, phase.row, phase.body) for root in _roots(body)]
        reads = [t for t in postorder(roots) if t.op == "read"]
        if not any(t.free >> phase.inner & 1 for t in reads):
            return None
        read = {t.payload.slot for t in reads}
        whole = lanes * put.dest.dtype.size % self.vector_bytes == 0
        return put if whole and put.dest.slot not in read else None

    def streamed_from(self, phase: Phase) -> int:
        """How many times the cache a result is from which `streamed` pays.

        Far more than once where nothing read is as large.
        """
        assert phase.inner is not None
        everything = mask_of((*phase.rows, phase.inner))
        roots = [root for body in (phase.row, phase.body) for root in _roots(body)]
        reads = [t for t in postorder(roots) if t.op == "read"]
        alone = all(everything & ~t.args[0].free for t in reads)
        return ALONE if alone else 1

    def masks(self, phase: Phase) -> bool:
        """Whether what is left of a loop is worth a masked vector; else it goes one by one."""
        return 0 < self.mask_bytes <= min(_memory_sizes(phase), default=8)


def processor(triple: str, cpu: str, features: Collection[str], streams: bool = False) -> Target:
    """The record of a processor with these features, in LLVM's words.

    Code that `streams` asks for the symbol `CACHE_BYTES`.

    >>> processor("x86_64-linux-gnu", "haswell", {"avx2", "fma", "f16c"}).vector_bytes
    32
    """
    words = ",".join(f"+{name}" for name in sorted(features))
    if not triple.startswith(("x86_64", "i686", "amd64")):
        return Target(triple, cpu, 16, words, 0, frozenset({"fma", "float16"}))
    wide = "avx512f" in features
    fine = {"avx512bw", "avx512vl"} <= set(features)
    mask = 1 if fine else 4 if wide or "avx2" in features else 0
    size = 64 if wide else 32 if "avx2" in features else 16
    # not bfloat16, whatever the processor: its instruction takes denormal numbers for 0
    names = {"fma": "fma", "float16": "f16c", "scalb": "avx512vl"}
    has = frozenset(name for name, feature in names.items() if feature in features)
    return Target(triple, cpu, size, words, mask, has, streams)


def gpu(arch: str) -> Target:
    """The record of an NVIDIA GPU: `arch` such as "sm_90".

    Version 8.1 of PTX (of CUDA 12.1) lets entries take more than 4096 bytes of arguments.

    Raises:
        ParamError: `arch` is none, or older than sm_70, whose threads cannot exchange values so.
    """
    digits = arch[3:].rstrip("af") if isinstance(arch, str) and arch.startswith("sm_") else ""
    if not digits.isdigit() or int(digits) < 70:
        raise ParamError(complaint("gpu", "arch", "sm_70 or a later one, as 'sm_90'", repr(arch)))
    has = {"fma", "float16", "saturate"} | ({"bfloat16"} if int(digits) >= 80 else set())
    features = "+ptx81" if int(digits) <= 90 else ""
    return Target("nvptx64-nvidia-cuda", arch, 4, features, 0, frozenset(has))


_PC = "x86_64-unknown-linux-gnu"
TARGETS = {
    **{name: processor(_PC, name, features) for name, features in LEVELS.items()},
    "aarch64": processor("aarch64-unknown-linux-gnu", "generic", ("neon",)),
}


def named(name: str) -> Target:
    """The record of a machine: one of `TARGETS`, or a GPU such as "sm_90".

    Raises:
        ParamError: there is none of this name.
    """
    if isinstance(name, str) and name in TARGETS:
        return TARGETS[name]
    if isinstance(name, str) and name.startswith("sm_"):
        return gpu(name)
    expected = f"one of {', '.join(TARGETS)}, or a GPU such as 'sm_90'"
    raise ParamError(complaint("target", "name", expected, repr(name)))


def _memory_sizes(phase: Phase) -> list[int]:
    """The sizes of the elements that the innermost loops of a phase load and store."""
    sizes = []
    for body in (phase.row, phase.body):
        reads = (t for t in postorder(_roots(body)) if t.op == "read")
        sizes += [t.payload.dtype.size for t in reads]
        sizes += [stmt.dest.dtype.size for stmt in body if isinstance(stmt, Put)]
    return sizes


def _unroll(functions: int, others: int) -> int:
    """Registers that a value takes.

    A transcendental function is a long chain of steps that wait for each other: four of them side
    by side take a third to a fifth less time than two, and the five of an LSTM's step in pairs a
    sixth less than alone.
    """
    if functions <= MANY and others <= 12:
        return 4
    return 2 if others + 3 * functions <= 50 else 1


def _work(bodies: Iterable[Body]) -> tuple[int, int]:
    """How many transcendental functions bodies take, and how many other steps."""
    statements = [stmt for body in bodies for stmt in every(body)]
    terms = [stmt.term for stmt in statements if isinstance(stmt, Let)]
    functions = sum(term.op in math.RULES for term in terms)
    return functions, len(terms) - functions


def _sizes(
    terms: Iterable[Term], repeated: Collection[int] = (), known: Collection[int] = ()
) -> list[int]:
    """The sizes of the values that are computed in lanes."""
    sizes = []
    for term in terms:
        if term.op not in ("var", "arg", "const") and term.dtype.kind != "b":
            data = term.op == "read" or not _index(term.dtype.name)
            size = max(1, term.dtype.size // 2) if term.id in repeated else term.dtype.size
            sizes.extend([size] if data else [])
        elif term.args and _index(term.args[0].dtype.name) and term.id not in known:
            sizes.append(COMPARED)
    return sizes


def _index(name: str) -> bool:
    return name == "int64"


def _roots(body: Body) -> list[Term]:
    roots = []
    for stmt in body:
        if isinstance(stmt, Let):
            roots.append(stmt.term)
        elif isinstance(stmt, Fold):
            roots.extend(stmt.terms)
        else:
            roots.append(stmt.value)
    return roots
