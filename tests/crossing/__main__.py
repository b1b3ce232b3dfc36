"""Random programs run by MXNet and by gnomon: the same lines are refused, the same numbers come.

    python -m tests.crossing --oracle ORACLE/bin/python --count 1000 --seed 0

MXNet runs in a process of its own, by the interpreter that is named; a program that ends it is left
out. Of gnomon each program runs three times: line by line while it is written, and twice with
nothing read before its end. Lines that gnomon computes and MXNet refuses are counted, and left out.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import pickle
import random
import re
import select
import struct
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tests.crossing.programs import Writer, filled, space

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 120  # seconds for a program
SEEN = "agrqm"  # kinds of names whose values are compared
# what docs/differences.md says is refused
TOLD = (
    "expected elements for shape", "smooth_l1: argument 'data'", "row indices from 0",
    "expected classes from", "'pad': expected less than kernel", "was not computed from a variable",
)  # fmt: skip


# -- running ------------------------------------------------------------------------------------


def run(mx: Any, lines: list[str], each: bool, noise: int = 0) -> tuple[list[str], dict[str, Any]]:
    """What lines were refused with, and the values that names have at the end.

    With `noise`, a seed, every number that a program draws is off by a rounding.
    """
    names, refused = space(mx), list[str]()
    if noise:
        names["filled"] = lambda *given: rounded(filled(*given), noise)
    for line in lines:
        refused.append(step(mx, names, line, each))
    return refused, {n: told(v) for n, v in names.items() if n[0] in SEEN and n[1:2].isalnum()}


def rounded(drawn: Any, seed: int) -> Any:
    """Numbers of which each is off by up to two roundings."""
    if drawn.dtype.kind != "f":
        return drawn
    off = np.random.RandomState(seed).uniform(-2, 2, drawn.shape)
    return (drawn * (1 + off * np.finfo(np.float32).eps)).astype(drawn.dtype)


def step(mx: Any, names: dict[str, Any], line: str, each: bool) -> str:
    """Run a line, and with `each` wait for it; the error by which it was refused, or nothing."""
    before = set(names)
    try:
        exec(line, names)
        if each:
            settle(mx, names)
    except Exception as error:
        if each:  # what it would have made, and what failed, is there no more
            for name in set(names) - before:
                del names[name]
        return f"{type(error).__name__}: {error}"
    return ""


def settle(mx: Any, names: dict[str, Any]) -> None:
    mx.nd.waitall()
    for name in list(names)[-2:]:
        if hasattr(names[name], "wait_to_read"):
            names[name].wait_to_read()


def told(value: Any) -> Any:
    """A value in plain types, for another process."""
    if hasattr(value, "asnumpy"):
        try:
            array = value.asnumpy()
        except Exception as error:
            return f"unreadable: {type(error).__name__}"
        raw = np.asarray(array).tobytes()
        return "array", str(np.dtype(value.dtype)), array.shape, raw, value.stype
    if isinstance(value, np.ndarray) and value.size == 1:  # asscalar of shape (1, 1)
        return value.item()
    if isinstance(value, (list, tuple)):
        return [told(x) for x in value]
    if isinstance(value, (int, float, str, bool, np.number)):
        return value.item() if isinstance(value, np.number) else value
    return getattr(value, "__name__", type(value).__name__)


# -- the other process --------------------------------------------------------------------------


def send(stream: BinaryIO, value: Any) -> None:
    data = pickle.dumps(value, protocol=4)
    stream.write(struct.pack("<q", len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    return pickle.loads(stream.read(*struct.unpack("<q", head)))


def serve() -> None:
    """Run what comes, by MXNet, until nothing comes any more."""
    mx = importlib.import_module("mxnet")

    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print goes elsewhere
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    while True:
        try:
            lines, noise = receive(sys.stdin.buffer)
        except EOFError:
            return
        send(out, run(mx, lines, each=True, noise=noise))


class Oracle:
    """The process with MXNet."""

    def __init__(self, python: str) -> None:
        self.python, self.died = python, 0
        self.start()

    def start(self) -> None:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "MXNET_SUBGRAPH_BACKEND": "NONE"}
        env |= {"MXNET_ENGINE_TYPE": "NaiveEngine", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [self.python, "-m", "tests.crossing", "--serve"], cwd=ROOT, env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def run(self, lines: list[str], noise: int = 0) -> Any:
        """What MXNet makes of a program; None where that ends it."""
        there: Any = self.process.stdin  # pipes, as `start` asks for
        stream: Any = self.process.stdout
        try:
            send(there, (lines, noise))
            if not select.select([stream], [], [], PATIENCE)[0]:
                raise EOFError
            return receive(stream)
        except (EOFError, BrokenPipeError):
            self.process.kill()
            self.process.wait()
            self.died += 1
            self.start()
            return None


# -- comparing ----------------------------------------------------------------------------------


def unlike(ours: Any, theirs: Any) -> bool:
    """Whether values differ by more than rounding."""
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        if ours[:1] == ("array",) and theirs[:1] == ("array",):
            return differs(ours, theirs)
        return len(ours) != len(theirs) or any(map(unlike, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, (int, float)):
        return not np.isclose(ours, theirs, 1e-4, 1e-5, equal_nan=True)
    if isinstance(ours, str) and isinstance(theirs, str):
        return False  # numbers in print are compared as arrays
    return bool(ours != theirs)


def differs(ours: Any, theirs: Any) -> bool:
    if ours[1:3] != theirs[1:3] or ours[4] != theirs[4]:
        return True
    a, b = (np.frombuffer(x[3], x[1]).astype(np.float64) for x in (ours, theirs))
    coarse = 4e-3 if ours[1] == "float16" else 2e-4  # MXNet holds parameters in float32
    finite = np.abs(b[np.isfinite(b)])
    largest = float(finite.max()) if finite.size else 0.0
    near = np.isclose(a, b, coarse, coarse * max(min(largest, 1e6) * 0.1, 1e-2), equal_nan=True)
    return not near.all()


class Hunt:
    """Programs, one after the other, and what was found."""

    def __init__(self, mx: Any, oracle: Oracle, length: int) -> None:
        self.mx, self.oracle, self.length = mx, oracle, length
        self.more: Counter[str] = Counter()  # what gnomon computes and MXNet refuses
        self.example: dict[str, str] = {}
        self.compared = 0

    def write(self, seed: int) -> list[str]:
        names = space(self.mx)
        writer = Writer(seed, names, lambda line: not step(self.mx, names, line, each=True))
        return writer.write(random.Random(seed).randint(8, self.length))

    def program(self, seed: int) -> str:
        """Run a program by both; what is wrong about it, or nothing."""
        lines = self.write(seed)
        for _ in range(6):
            theirs = self.oracle.run(lines)
            if theirs is None:
                return ""
            ours = run(self.mx, lines, each=True)
            wider = self.wider(lines, ours[0], theirs[0])
            if not wider:
                break
            lines = [line for k, line in enumerate(lines) if k not in wider]
        else:
            return ""
        found = self.compare(lines, ours, theirs, "line by line")
        for turn in ("first", "second"):
            found = found or self.compare(
                lines, run(self.mx, lines, each=False), theirs, f"the {turn} time", lazy=True
            )
        self.compared += 1
        return found and f"seed {seed}: {found}\n" + "\n".join(lines)

    def wider(self, lines: list[str], ours: list[str], theirs: list[str]) -> set[int]:
        """The number of the first line that MXNet alone refuses, or refuses after it wrote."""
        for k, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            if our and "nplace" in their:
                return {k}
            if their and not our:
                kind = re.sub(r"\d+", "", lines[k])[:70]
                self.more[kind] += 1
                self.example.setdefault(kind, f"{lines[k]}  # {their[:300]!r}")
                return {k}
        return set()

    def compare(
        self, lines: list[str], ours: Any, theirs: Any, how: str, lazy: bool = False
    ) -> str:
        for k, (our, their) in enumerate(zip(ours[0], theirs[0], strict=True)):
            if our and not their:
                if any(words in our for words in TOLD):
                    return ""
                return f"{how}: refused line {k}: {lines[k]}\n  {our}"
            if lazy and their and not our:
                return ""  # an error that travels: what follows differs
        for name in ours[1]:
            if name in theirs[1] and unlike(ours[1][name], theirs[1][name]):
                if name[0] == "q" and self.is_chance(lines, name, theirs[1][name]):
                    continue
                a, b = shown(ours[1][name]), shown(theirs[1][name])
                return f"{how}: {name}\n  gnomon {a}\n  MXNet  {b}"
        return ""

    def is_chance(self, lines: list[str], name: str, theirs: Any) -> bool:
        """Whether MXNet trains to other parameters where what is drawn is off by a rounding.

        Where a gradient is 0 but for rounding, an optimizer that divides by its size makes a whole
        step of it.
        """
        for noise in range(1, 5):
            found = self.oracle.run(lines, noise)
            if found is None or unlike(found[1].get(name), theirs):
                return True
        return False


def shown(value: Any) -> str:
    if isinstance(value, tuple) and value[:1] == ("array",):
        array = np.frombuffer(value[3], value[1])
        return f"{value[1]} {value[4]} {value[2]} {array[:12]}"
    return f"{value!r:.200}"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.crossing", description=__doc__)
    parser.add_argument("--oracle", help="the interpreter that has MXNet")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=30)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve()
        return 0
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    np.seterr(all="ignore")
    mx = importlib.import_module("gnomon")  # the process with MXNet has none
    hunt, failed = Hunt(mx, Oracle(asked.oracle), asked.length), 0
    for seed in range(asked.seed, asked.seed + asked.count):
        if found := hunt.program(seed):
            failed += 1
            print(found, end="\n\n", flush=True)
    for kind, count in hunt.more.most_common():
        print(f"{count:5} {hunt.example[kind]}")
    print(f"{hunt.compared} programs, {failed} differ, MXNet ended {hunt.oracle.died} times")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
