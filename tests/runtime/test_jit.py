"""Machine code: compiled, loaded again, refused, used from threads and after a fork."""

from __future__ import annotations

import ctypes
import os
import threading

import pytest

from gnomon.base import GnomonError
from gnomon.runtime.compiler import jit

ADD = "define i64 @add{n}(i64 %a) {{ %r = add i64 %a, {n}\n ret i64 %r }}"


def call(module: jit.Module, name: str, argument: int) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(module.address(name))(argument)


def test_compiles_and_reloads() -> None:
    code = jit.object_code(ADD.format(n=3))
    for argument in (4, 5):
        assert call(jit.load_object(code), "add3", argument) == argument + 3
    assert "add3" in jit.ir(ADD.format(n=3))
    assert "add3:" in jit.assembly(ADD.format(n=3))


@pytest.mark.parametrize("number", [0, 1, 1 << 40])
def test_a_symbol_may_stand_for_any_number(number: int) -> None:
    text = "@given = external global i8\n" + (
        "define i64 @f(i64 %a) { %r = add i64 %a, ptrtoint (ptr @given to i64)\n ret i64 %r }"
    )
    assert call(jit.compile_ir(text, symbols={"given": number}), "f", 5) == number + 5


@pytest.mark.parametrize("opt", [0, 1, 2, 3])
def test_every_level(opt: int) -> None:
    assert call(jit.compile_ir(ADD.format(n=1), opt=opt), "add1", 1) == 2


def test_symbols_and_process_functions() -> None:
    base = jit.compile_ir(ADD.format(n=5))
    text = (
        "declare i64 @gnomon_given(i64)\ndeclare i64 @labs(i64)\n"
        "define i64 @both(i64 %a) { %x = call i64 @labs(i64 %a)\n"
        "%y = call i64 @gnomon_given(i64 %x)\n ret i64 %y }"
    )
    module = jit.compile_ir(text, symbols={"gnomon_given": base.address("add5")})
    assert call(module, "both", -2) == 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "not valid LLVM IR"),
        ("define i32 @f() { %x = add i32 1, 1\n ret i64 %x }", "not valid LLVM IR"),
        (
            "declare i32 @gnomon_nobody()\n"
            "define i32 @f() { %x = call i32 @gnomon_nobody()\n ret i32 %x }",
            "gnomon_nobody",
        ),
    ],
)
def test_refuses_bad_text(text: str, words: str) -> None:
    with pytest.raises(GnomonError, match=words):
        jit.compile_ir(text)


def test_refuses_bad_objects_and_names() -> None:
    with pytest.raises(GnomonError, match="not recognized"):
        jit.load_object(b"junk" * 30)
    with pytest.raises(GnomonError, match="expected one of"):
        jit.compile_ir(ADD.format(n=1)).address("zz")


def test_closing() -> None:
    module = jit.compile_ir(ADD.format(n=1))
    module.close()
    module.close()
    with pytest.raises(GnomonError, match="closed"):
        module.address("add1")


def test_threads_and_fork() -> None:
    wrong: list[int] = []

    def work(n: int) -> None:
        for _ in range(5):
            got = call(jit.compile_ir(ADD.format(n=n)), f"add{n}", 1)
            wrong.extend([n] * (got != n + 1))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    child = os.fork()
    if child == 0:
        os._exit(call(jit.compile_ir(ADD.format(n=9)), "add9", 1) != 10)
    for thread in threads:
        thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not wrong
