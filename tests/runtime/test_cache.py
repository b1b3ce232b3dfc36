"""Kernels between processes: found again, never wrong, and never in the way when the disk fails."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnomon import config, shadow
from gnomon import dtype as dt
from gnomon.code import target as targets
from gnomon.expr import ext, fn
from gnomon.expr.composite import Chainer
from gnomon.expr.functions.scalar import SCALAR
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.reducer import REDUCERS, Reducer, from_operator
from gnomon.plan import form
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.compiler import cross, disk, key, objects
from gnomon.runtime.compiler.disk import Disk
from gnomon.runtime.execution import threads
from gnomon.runtime.kernels.cache import Cache, made

ROOT = Path(__file__).parents[2]

ENV = {"PYTHONPATH": str(ROOT)}
MACHINE = 1  # entry of what LLVM says about the machine
# Python's own byte code would be cut off, too, and other processes read it
LIMIT = """
import resource, sys
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
"""
WORK = """
import sys
import numpy as np
from gnomon import shadow
from gnomon.expr import ext, fn
from gnomon.runtime.compiler import key, objects
from gnomon.runtime.statements.prepare import Store, prepare

key.sources_digest = lambda package, begun: "sources"  # the sources may be edited meanwhile

@shadow.op
def bump(a, b):
    return a * b if a > 1 else a - b

values = np.arange(60, dtype=np.float32).reshape(6, 10) / 7
x, y = shadow.Tensor(values), shadow.Tensor(np.zeros_like(values))
rows, whole = shadow.Tensor(np.zeros(6, np.float32)), shadow.Tensor(np.zeros((), np.float32))
seen = []
for dest, value in [
    (y, 2.0 * x + 1.0),
    (y, shadow.F(bump)(x, y)),
    (rows, ext.reduce(fn.exp(x), "sum", 1)),
    (whole, ext.reduce(x, "max")),
    (y, x - ext.broadcast_axis(ext.reduce(x, "sum", 1), (6, 10), 0)),
]:
    for step in prepare([Store(dest, "saveto", value)]):
        step.run()
    seen.append(float(np.sum(dest.numpy(), dtype=np.float64)))
print(objects.COUNTS.compiled, objects.COUNTS.loaded, *seen)
"""


def start(folder: Path, script: str = WORK, **env: str) -> subprocess.Popen[str]:
    work = folder / "work.py"  # an operator is made from its source
    if not work.exists():
        work.write_text(script)
    return subprocess.Popen(
        [sys.executable, str(work)],
        cwd=ROOT, env=os.environ | ENV | {"GNOMON_CACHE_DIR": str(folder)} | env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> tuple[int, int, list[str], str]:
    """What a process compiled, loaded, computed, and said on stderr."""
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    compiled, loaded, *values = out.split()
    return int(compiled), int(loaded), values, err


def entries(folder: Path) -> list[Path]:
    return sorted((folder / "kernels").glob("*.kernel"))


# --- processes ------------------------------------------------------------------------------


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    compiled, loaded, values, _ = finish(start(tmp_path, PYTHONHASHSEED="1"))
    assert compiled == 5, "no more than the kernels: so little work starts no threads"
    assert loaded == 0
    assert len(entries(tmp_path)) == compiled + MACHINE
    assert finish(start(tmp_path, PYTHONHASHSEED="2")) == (0, compiled, values, "")


def test_eight_processes_write_at_once(tmp_path: Path) -> None:
    processes = [start(tmp_path) for _ in range(8)]
    found = [finish(process) for process in processes]
    assert len({tuple(values) for _, _, values, _ in found}) == 1
    assert not list(tmp_path.glob("kernels/*.part"))
    names = [path.stem for path in entries(tmp_path)]
    place = Disk(tmp_path / "kernels", 1 << 28)
    assert all(place.read(name) for name in names)
    assert len(names) == max(compiled + loaded for compiled, loaded, _, _ in found) + MACHINE


def test_files_that_may_not_grow_are_done_without(tmp_path: Path) -> None:
    """The system's own limit stands for a full disk."""
    limit = LIMIT.format(0)
    compiled, loaded, _, said = finish(start(tmp_path, limit + WORK, GNOMON_DEBUG="1"))
    assert compiled == 5, "no more than the kernels: so little work starts no threads"
    assert loaded == 0
    assert said.count("kernels are not kept on disk") == 1
    assert not list(tmp_path.glob("kernels/*"))


@pytest.mark.parametrize("size", [1, 700, 5000])
def test_a_disk_that_fills_in_the_middle_of_an_entry(tmp_path: Path, size: int) -> None:
    """What is cut off is never taken for an entry, by this process or a later one."""
    limit = LIMIT.format(size)
    compiled, loaded, values, _ = finish(start(tmp_path, limit + WORK))
    assert (compiled, loaded) == (5, 0)
    assert not list(tmp_path.glob("kernels/*.part"))
    again = finish(start(tmp_path, limit + WORK))
    assert again[2] == values
    assert again[0] == compiled - again[1]


@pytest.mark.parametrize("home", ["/proc/none", "/dev/null", ""])
def test_a_home_that_cannot_be_written(tmp_path: Path, home: str) -> None:
    (tmp_path / "here").mkdir()
    found = finish(start(tmp_path, HOME=home, XDG_CACHE_HOME=home, GNOMON_CACHE_DIR=home))
    assert found[2] == finish(start(tmp_path))[2]


def test_processes_beside_one_that_damages_what_they_write(tmp_path: Path) -> None:
    want = finish(start(tmp_path, GNOMON_DISK_CACHE="0"))[2]
    processes = [start(tmp_path) for _ in range(4)]
    turn = 0
    while any(process.poll() is None for process in processes):
        for path in entries(tmp_path):
            turn += 1
            with contextlib.suppress(OSError):  # another process has just removed it
                data = path.read_bytes()
                half = len(data) // 2
                path.write_bytes([data[:half], data[:half] + b"?" + data[half + 1 :]][turn % 2])
        time.sleep(0.01)
    assert [finish(process)[2] for process in processes] == [want] * 4
    assert finish(start(tmp_path))[2] == want


def test_programs_that_tests_start_find_what_others_compiled() -> None:
    """Else each compiles gnomon's sources and native functions anew, and writes beside sources."""
    ask = "import sys; print(sys.dont_write_bytecode, sys.pycache_prefix)"
    said = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", f"{os.environ['GNOMON_CACHE_DIR']}/code"]


# --- within one process, each Cache being another one's memory ------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for kernels, of a gnomon whose sources nobody is changing just now."""
    threads.parallel_address()  # has code of its own
    monkeypatch.setattr(key, "surroundings", lambda: "here")
    disk._disk.cache_clear()
    with config.using(cache_dir=tmp_path):
        yield tmp_path


def leaf(array: np.ndarray[Any, Any]) -> Buffer:
    return Buffer(array.shape, dt.of(array.dtype), None, array.ctypes.data, array)


def counted(value: Expr) -> tuple[np.ndarray[Any, Any], int, int]:
    """The value by a process without kernels in memory; how many it compiled, and loaded."""
    result = np.zeros(value.shape, value.dtype.numpy)
    stores = [Store(leaf(result), "saveto", value)]
    structure = Structure(stores)
    compiled, loaded = objects.COUNTS.compiled, objects.COUNTS.loaded
    Cache(made, 4).get(stores, structure).bind(structure).run()
    return result, objects.COUNTS.compiled - compiled, objects.COUNTS.loaded - loaded


NUMBERS = np.arange(24, dtype=np.float32).reshape(4, 6) - 7


def check(value: Expr, want: np.ndarray[Any, Any], compiled: int, loaded: int) -> None:
    got, *counts = counted(value)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert counts == [compiled, loaded]


@pytest.mark.parametrize("axes", [None, 0, 1])
def test_a_reduction_is_found_again_and_fits_other_sizes(folder: Path, axes: int | None) -> None:
    check(ext.reduce(leaf(NUMBERS), "sum", axes), NUMBERS.sum(axes), 1, 0)
    other = np.ones((9, 5), np.float32)
    check(ext.reduce(leaf(other), "sum", axes), other.sum(axes), 0, 1)


def test_a_user_operator_goes_by_its_formula(folder: Path) -> None:
    def twice(a: float) -> float:
        return a * 2.0 if a > 0 else a

    x, above = leaf(NUMBERS), np.maximum(NUMBERS, 0)
    check(shadow.op(twice)(x), NUMBERS + above, 1, 0)
    check(shadow.op(twice)(x), NUMBERS + above, 0, 1)

    def twice(a: float) -> float:  # type: ignore[no-redef]
        return a * 3.0 if a > 0 else a

    check(shadow.op(twice)(x), NUMBERS + 2 * above, 1, 0)


class Offset(Chainer):
    """A user's node: its rule reads what no key of gnomon's can know."""

    added = 1.0

    src: Expr

    def infer(self) -> tuple[Any, Any]:
        return self.src.shape, self.src.dtype

    def at(self, i: Any) -> Any:
        return i.elem(self.src, i) + self.added


Offset = dataclasses.dataclass(frozen=True, eq=False, repr=False)(Offset)  # type: ignore[misc]


def test_a_user_extension_goes_by_its_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = leaf(NUMBERS)
    check(Offset(x), NUMBERS + 1, 1, 0)
    check(Offset(x), NUMBERS + 1, 0, 1)
    monkeypatch.setattr(Offset, "added", 2.0)
    check(Offset(x), NUMBERS + 2, 1, 0)
    check(Offset(x), NUMBERS + 2, 0, 1)


def test_a_users_reducer_goes_by_its_formula_or_its_code(folder: Path) -> None:
    x = leaf(NUMBERS)
    largest = from_operator(SCALAR["maximum"], -1e30)
    for compiled in (1, 0):
        check(ext.reduce(x, largest, 1), NUMBERS.max(1), compiled, 1 - compiled)

    def combine(arena: Any, a: Any, b: Any) -> Any:
        return (arena.op("min", a[0], b[0]),)

    mine = Reducer("user:mine", 1, lambda dtype: (1e30,), combine, ("plain", 1))
    for compiled in (1, 0):
        check(ext.reduce(x, mine, 1), NUMBERS.min(1), compiled, 1 - compiled)


@pytest.mark.parametrize(
    "thing",
    [
        object(),
        (1, (lambda x: x)),
        np.float32(1),
        Offset,
        dataclasses.make_dataclass("Local", [("x", int)])(1),
        Reducer("sum", 1, lambda dtype: (0,), lambda arena, a, b: a),
    ],
)
def test_what_only_this_process_knows_has_no_form(thing: Any) -> None:
    with pytest.raises(form.Unnamed):
        form.form(thing)


def test_different_parts_have_different_forms() -> None:
    things = [0, False, 0.0, -0.0, "0", None, (), (0,), ((0,),), (0, 0), dt.float32, dt.int32]
    things += [REDUCERS["sum"], REDUCERS["max"], SCALAR["exp"], SCALAR["log"], float("nan")]
    assert len({form.form(thing) for thing in things}) == len(things)


def test_memory_is_bounded_and_the_settings_turn_the_disk_off(folder: Path) -> None:
    small = Cache(made, 2)
    for name in ("exp", "log", "tanh"):
        stores = [Store(leaf(np.zeros_like(NUMBERS)), "saveto", SCALAR[name](leaf(NUMBERS)))]
        small.get(stores, Structure(stores))
    assert len(small.kernels) == 2
    kept = entries(folder)
    assert len(kept) == 3
    for off in ({"disk_cache": False}, {"disk_cache_limit": 0}):
        with config.using(**off):
            check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 1, 0)
    check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 0, 1)


def test_the_assembly_of_other_machines_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "define i32 @two() { ret i32 2 }"
    machines = [targets.gpu("sm_80"), targets.gpu("sm_90"), targets.TARGETS["aarch64"]]
    made = [cross.kept_assembly(text, machine) for machine in machines]
    assert made == [cross.assembly(text, machine) for machine in machines]
    assert ".target sm_80" in made[0] and len(entries(folder)) == 3
    with monkeypatch.context() as inside:
        inside.setattr(cross, "assembly", lambda *_: "made anew")
        assert [cross.kept_assembly(text, machine) for machine in machines] == made
        assert cross.kept_assembly(text, machines[0], 2) == "made anew"
    for path in entries(folder):
        path.write_bytes(b"damaged")
    assert [cross.kept_assembly(text, machine) for machine in machines] == made
    with config.using(disk_cache=False):
        assert cross.kept_assembly(text, machines[0]) == made[0]


# --- damage ---------------------------------------------------------------------------------


def turned(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)


def misplaced(path: Path) -> None:
    path.write_bytes(disk._sealed("0" * 40, b"\0" * 500))


def sealed(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(disk._sealed(path.stem, content)) and None


def linked(path: Path) -> None:
    aside = path.with_suffix(".moved")
    path.rename(aside)
    path.symlink_to(aside)


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "only its head": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "a bit turned": turned,
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "another file": lambda path: path.write_bytes(b"#!/bin/sh\n" * 300),
    "another entry": misplaced,
    "nothing within": sealed(b""),
    "no signature": sealed(objects._SIZE.pack(16) + b"\xff" * 16 + b"code"),
    "no code": sealed(objects._SIZE.pack(6) + b"kernel"),
    "a size beyond": sealed(objects._SIZE.pack(1 << 31) + b"x"),
    "writable by others": lambda path: path.chmod(0o666),
    "a link": linked,
    "a pipe": a_pipe,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_entry_is_missing_and_made_anew(folder: Path, damage: str) -> None:
    want = np.exp(NUMBERS)
    check(fn.exp(leaf(NUMBERS)), want, 1, 0)
    (path,) = entries(folder)
    sound = path.read_bytes()
    DAMAGE[damage](path)
    check(fn.exp(leaf(NUMBERS)), want, 1, 0)
    assert path.read_bytes() == sound
    assert path.stat().st_mode & 0o777 == 0o600
    check(fn.exp(leaf(NUMBERS)), want, 0, 1)


@pytest.fixture
def carried(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kernel of an exponential, as it comes with a package."""
    check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 1, 0)
    (path,) = entries(folder)
    place = tmp_path / "package" / path.name
    place.parent.mkdir()
    path.rename(place)
    monkeypatch.setattr(disk, "CARRIED", place.parent)
    return place


def test_what_came_with_the_package_is_found_and_not_copied(folder: Path, carried: Path) -> None:
    check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 0, 1)
    assert not entries(folder)
    with config.using(disk_cache=False):
        check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 1, 0)


@pytest.mark.parametrize("damage", sorted(set(DAMAGE) - {"writable by others", "a link", "a pipe"}))
def test_what_came_damaged_is_made_anew(folder: Path, carried: Path, damage: str) -> None:
    DAMAGE[damage](carried)
    came = carried.read_bytes()
    check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 1, 0)
    assert carried.read_bytes() == came
    check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 0, 1)


def test_a_signature_that_does_not_read_is_removed(folder: Path) -> None:
    check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 1, 0)
    (path,) = entries(folder)
    content = Disk(path.parent, 1 << 20).read(path.stem)
    assert content is not None
    (beside,) = objects._SIZE.unpack_from(content)
    start = objects._SIZE.size
    wrong = content[:start] + b"\xff" * beside + content[start + beside :]
    path.write_bytes(disk._sealed(path.stem, wrong))
    check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 1, 1)
    check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 0, 1)


def test_a_folder_in_an_entrys_place_stays(folder: Path) -> None:
    check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 1, 0)
    (path,) = entries(folder)
    path.unlink()
    path.mkdir()
    for _ in range(2):
        check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 1, 0)
    assert not list(folder.glob("kernels/*.part"))


# --- where nothing can be written -----------------------------------------------------------


@pytest.mark.parametrize("place", ["file/below", "/proc/none/such", "/dev/null"])
def test_a_place_that_is_none(folder: Path, place: str, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "file").write_text("not a folder")
    with config.using(cache_dir=folder / place, debug=1):
        for _ in range(3):
            check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 1, 0)
    assert capfd.readouterr().err.count("kernels are not kept on disk") == 1


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_disk_that_refuses(
    folder: Path, code: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path, data: bytes) -> None:
        path.write_bytes(data[: len(data) // 2])
        raise OSError(code, os.strerror(code))

    check(fn.log(leaf(NUMBERS + 8)), np.log(NUMBERS + 8), 1, 0)
    monkeypatch.setattr(disk, "_write_new", refuse)
    for _ in range(2):
        check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 1, 0)
    assert len(list(folder.glob("kernels/*"))) == 1
    assert capfd.readouterr().err == ""
    check(fn.log(leaf(NUMBERS + 8)), np.log(NUMBERS + 8), 0, 1)  # what is there is still read


def test_without_known_sources_nothing_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key, "surroundings", lambda: "")
    check(fn.exp(leaf(NUMBERS)), np.exp(NUMBERS), 1, 0)
    assert not entries(folder)


def test_the_mark_of_typical_work_is_true_until_one_of_its_kernels_goes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_USED", set())  # other tests' kernels are elsewhere
    assert not objects.is_prepared()
    check(ext.reduce(leaf(NUMBERS), "sum", 1), NUMBERS.sum(1), 1, 0)
    (kernel,) = entries(folder)
    objects.set_prepared()
    assert objects.is_prepared()
    kernel.unlink()
    assert not objects.is_prepared()
