"""Code for machines other than this one, from the same LLVM IR text: assembly and object files.

LLVM's back ends for x86, AArch64 and NVPTX are part of llvmlite, so this needs no compiler, no
other machine and no GPU.
"""

from __future__ import annotations

from gnomon.code.target import Target
from gnomon.runtime.compiler import guard, objects
from gnomon.runtime.compiler.guard import llvm


def assembly(text: str, target: Target, opt: int = 1) -> str:
    """The assembly (for a GPU: PTX) of a text; `opt` is the pipeline, see `jit.object_code`.

    >>> from gnomon.code.target import TARGETS
    >>> "ret" in assembly("define i32 @two() { ret i32 2 }", TARGETS["aarch64"])
    True

    Raises:
        GnomonError: the text does not parse or verify.
    """
    emit = llvm.assembly_for
    return guard.undisturbed(lambda: emit(text, opt, target))


def kept_assembly(text: str, target: Target, opt: int = 1) -> str:
    """As `assembly`, from disk where this process or another has made it before.

    Raises:
        GnomonError: the text does not parse or verify.
    """
    about = (target.triple, target.cpu, target.features, str(opt))
    name, place = objects.name_of("assembly", *about, text), objects.disk()
    if name is None or place is None:
        return assembly(text, target, opt)
    kept = place.read(name)
    if kept is not None:
        return kept.decode()
    made = assembly(text, target, opt)
    place.write(name, made.encode())
    return made


def object_file(text: str, target: Target, opt: int = 1) -> bytes:
    """The object file of a text, which `jit.load_object` takes on a machine of that kind.

    Raises:
        GnomonError: the text does not parse or verify.
    """
    emit = llvm.object_code_for
    return guard.undisturbed(lambda: emit(text, opt, target))
