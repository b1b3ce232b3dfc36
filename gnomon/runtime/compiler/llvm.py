"""What LLVM does: object code and assembly from IR, and what it says about this machine.

Only this file imports llvmlite, which takes 60 ms and 48 MB: when something is compiled, and not
where all code is on disk. Every function is to be called within `guard.undisturbed`, or under its
lock.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import llvmlite
from llvmlite import binding

from gnomon.base import GnomonError
from gnomon.runtime.compiler import guard
from gnomon.runtime.compiler.host import HostInfo
from gnomon.runtime.compiler.jit import BRANCHES, STRAIGHT
from gnomon.runtime.compiler.trim import trim_later
from gnomon.runtime.ffi import symbol

if TYPE_CHECKING:
    from gnomon.code.target import Target


def ask_host() -> HostInfo:
    """What LLVM says about the machine that runs this process."""
    with guard.lock:
        _initialize()
        features = binding.get_host_cpu_features()
        version = ".".join(map(str, binding.llvm_version_info))
        return HostInfo(
            _elf(binding.get_process_triple()),
            binding.get_host_cpu_name(),
            frozenset(name for name, on in features.items() if on),
            f"{llvmlite.__version__} {version}",
        )


def _elf(triple: str) -> str:
    """The triple of the same machine where object files are ELF."""
    return triple if "linux" in triple or triple.endswith("elf") else f"{triple}-elf"


@functools.cache
def _initialize() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()


def object_code(text: str, opt: int, verify: bool, host: HostInfo) -> bytes:
    """The object file of a text, for this machine.

    Raises:
        GnomonError: the text does not parse or verify.
    """
    machine = _machine(host, opt < 0)
    module = optimised(text, opt, machine, verify)
    with _without_lsr():
        code = bytes(machine.emit_object(module))
    trim_later(_LIBRARY)
    return code


def ir(text: str, opt: int, host: HostInfo) -> str:
    """The text after its pipeline."""
    return str(optimised(text, opt, _machine(host, opt < 0)))


def assembly(text: str, opt: int, host: HostInfo) -> str:
    """The assembly of a text, for this machine."""
    machine = _machine(host, opt < 0)
    module = optimised(text, opt, machine)
    with _without_lsr():
        return str(machine.emit_assembly(module))


def object_code_for(text: str, opt: int, target: Target) -> bytes:
    """The object file of a text, for another machine."""
    machine = _machine_for(target)
    return bytes(machine.emit_object(optimised(text, opt, machine)))


def assembly_for(text: str, opt: int, target: Target) -> str:
    """The assembly of a text, for another machine."""
    machine = _machine_for(target)
    return str(machine.emit_assembly(optimised(text, opt, machine)))


def optimised(text: str, opt: int, machine: Any, verify: bool = True) -> Any:
    """LLVM's module of a text, after the pipeline `opt` for a target machine; within the lock.

    Raises:
        GnomonError: the text does not parse or verify.
    """
    try:
        module = binding.parse_assembly(text)
        if verify:
            module.verify()
    except RuntimeError as error:
        raise GnomonError(f"compile_ir: argument 'text': not valid LLVM IR: {error}") from None
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    if opt > 0:
        options = binding.create_pipeline_tuning_options(min(opt, 3))
        # what is worth vectors is written with them; LLVM 22 makes wrong code of some loops that
        # it makes vectors of by itself: seed 4462 of tests/shadow/test_compositions.py
        options.loop_vectorization = options.slp_vectorization = False
        builder = binding.create_pass_builder(machine, options)
        usual = builder.getModulePassManager
        chosen = {1: _light, BRANCHES: _branches, STRAIGHT: _straight}.get(opt, usual)
        chosen().run(module, builder)
    return module


def _light() -> Any:
    """What code that is vectorised and hoisted already needs: a quarter of the usual time.

    Stack places become registers (sroa), what they hid is simplified, loops test at their end
    (rotate) and short ones are unrolled.
    """
    passes = _to_rotated()
    passes.add_loop_unroll_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_dead_code_elimination_pass()
    return passes


def _straight() -> Any:
    """What vector loops that go straight through memory need: little more than half of `_light`.

    They have several registers in flight, which is as good as to unroll them. Where rows are many
    and short, or read across, the rest of `_light` makes them up to a sixth faster.
    """
    passes = _to_rotated()
    passes.add_simplify_cfg_pass()
    return passes


def _to_rotated() -> Any:
    """The passes that both begin with, up to loops that test at their end."""
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_new_gvn_pass()
    passes.add_loop_rotate_pass()
    return passes


def _branches() -> Any:
    """What code of calls and branches needs: the functions that ask for it inlined, ways joined.

    Two thirds of the usual pipeline's time, and the same code.
    """
    passes = binding.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_jump_threading_pass()
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    return passes


@contextmanager
def _without_lsr() -> Iterator[None]:
    """Inside, within the lock, code is generated without LLVM's loop strength reduction.

    Loops come with the induction variables they need; the search for others takes a third of code
    generation and makes no kernel faster. The option holds for the whole process, so it is set for
    these moments alone.
    """
    binding.set_option("gnomon", "--disable-lsr=true")
    try:
        yield
    finally:
        binding.set_option("gnomon", "--disable-lsr=false")


@functools.cache
def _machine(host: HostInfo, hasty: bool) -> Any:
    _initialize()
    return binding.Target.from_triple(host.triple).create_target_machine(
        cpu=host.cpu,
        features=host.feature_string,
        opt=0 if hasty else 2,
        reloc="pic",
        codemodel="small",
        jit=True,
    )


@functools.cache
def _machine_for(target: Target) -> Any:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small"
    )


_LIBRARY = symbol(ctypes.CDLL(binding.ffi.lib._name), "LLVMPY_DisposeModule")
guard.LOCKS.append(binding.ffi.lib._lock._lock)  # llvmlite takes it around each of its calls
