"""Memory for machine code: never written and executed, given back, right from threads and forks."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import threading
from pathlib import Path

import pytest

from gnomon.base import GnomonError
from gnomon.runtime.compiler import jit
from gnomon.runtime.compiler.memory import Region, flusher
from tests.limits import mapped

TEXT = "define i64 @add(i64 %a) {{ %r = add i64 %a, {}\n ret i64 %r }}"
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


def sum_of(module: jit.Module, a: int) -> int:
    """What its function gives; it is held until then."""
    return int(FUNCTION(module.address("add"))(a))


def rights(address: int) -> str | None:
    """What may be done with the memory at an address; None where there is none."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        ends, may, *_ = line.split()
        low, high = (int(end, 16) for end in ends.split("-"))
        if low <= address < high:
            return may
    return None


def test_code_is_written_then_run_then_gone() -> None:
    region = Region(10)
    assert rights(region.address) == "rw-p"
    region.fill(b"0123456789")
    assert rights(region.address) == "r-xp"
    assert ctypes.string_at(region.address, 10) == b"0123456789"
    region.free()
    assert rights(region.address) is None
    with pytest.raises(ValueError, match="11 bytes"):
        Region(10).fill(b"01234567891")


def test_a_module_that_is_closed_or_forgotten_is_unmapped() -> None:
    code = jit.object_code(TEXT.format(2))
    for end in (lambda module: module.close(), lambda module: None):
        module = jit.load_object(code)
        address = module.address("add")
        assert rights(address) == "r-xp"
        end(module)
        del module
        assert rights(address) is None


def test_loading_that_fails_holds_nothing() -> None:
    code = jit.object_code(
        "declare void @nowhere()\ndefine void @f() { call void @nowhere()\n ret void }"
    )
    before = mapped()
    for _ in range(1000):
        with pytest.raises(GnomonError, match="nowhere"):
            jit.load_object(code)
    assert mapped() - before < 1 << 20


def test_ten_thousand_modules_leave_nothing() -> None:
    code = jit.object_code(TEXT.format(2))
    before = mapped()
    for _ in range(10_000):
        jit.load_object(code)
    assert mapped() - before < 1 << 20


def test_many_at_once() -> None:
    code = jit.object_code(TEXT.format(3))
    modules = [jit.load_object(code) for _ in range(3000)]
    assert all(sum_of(module, k) == k + 3 for k, module in enumerate(modules))


def test_no_room_is_an_error_and_later_there_is_some() -> None:
    code = jit.object_code(TEXT.format(2))
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped(), hard))
    held: list[jit.Module] = []
    try:
        with pytest.raises(MemoryError, match="cannot map"):
            held.extend(jit.load_object(code) for _ in range(10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert sum_of(jit.load_object(code), 1) == 3


def test_threads_load_while_the_process_forks() -> None:
    codes = [jit.object_code(TEXT.format(n)) for n in range(4)]
    wrong: list[int] = []
    over = threading.Event()

    def right(n: int) -> bool:
        return sum_of(jit.load_object(codes[n]), 1) == n + 1

    def work(n: int) -> None:
        while not over.is_set():
            wrong.extend([n] * (not right(n)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                os._exit(not all(map(right, range(4))))
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    over.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_memory_of_a_child_is_its_own() -> None:
    module = jit.compile_ir(TEXT.format(5))
    address = module.address("add")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(read, 1)  # until the parent has closed it
        os._exit(FUNCTION(address)(1) != 6)
    module.close()
    os.write(write, b".")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_processors_that_must_be_told_of_new_code() -> None:
    assert flusher("x86_64") is None
    flush = flusher("aarch64")  # the function that is found must bear to be called
    assert flush is not None
    region = Region(100)
    flush(region.address, region.size)
