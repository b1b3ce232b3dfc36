"""Plans as code of machines that tests do not run on: assembled by LLVM, accepted by `ptxas`."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gnomon.code import cpu, nvptx
from gnomon.code.target import TARGETS, gpu
from gnomon.plan.gpu.spread import spread
from gnomon.plan.ir import Kernel
from gnomon.plan.pipeline import plan
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.compiler import cross
from gnomon.runtime.kernels.kernel import pipeline
from tests.code.gpu import groups

ARM, GPU = TARGETS["aarch64"], gpu("sm_90")
OLDEST = (12, 1)  # the first CUDA whose assembler takes PTX 8.1
HEADER = re.compile(r"^\.(version|target|address_size) .*$", re.MULTILINE)


@functools.cache
def ptxas() -> str | None:
    """CUDA's assembler, where there is one; without it nothing judges PTX but LLVM."""
    path = shutil.which("ptxas")
    if path is None:
        return None
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    release = re.search(r"release (\d+)\.(\d+)", told)
    return path if release and (int(release[1]), int(release[2])) >= OLDEST else None


class Texts(NamedTuple):
    """LLVM IR for both machines, a name made of it, and the pipeline that it is worth."""

    name: str
    arm: str
    gpu: str
    opt: int


def texts(nests: Kernel) -> Texts:
    """What is written for a plan; the GPU's entries carry its name."""
    arm = cpu.write(nests, ARM)
    name = "k" + hashlib.blake2b(arm.encode(), digest_size=8).hexdigest()
    return Texts(name, arm, nvptx.write(spread(nests), GPU, name).text, pipeline(nests))


def nests_of(stores: Iterable[Store]) -> Iterator[Kernel]:
    """The plans of the kernels of a group of statements."""
    return (plan(group, Structure(group)) for group in groups(list(stores)))


def assembled(text: Texts) -> str:
    """The PTX of a plan; LLVM verifies and assembles it for both machines."""
    arm = cross.assembly(text.arm, ARM, text.opt)
    assert "kernel:" in arm
    called = set(re.findall(r"\bbl\s+(\w+)", arm)) - set(re.findall(r"^(\w+):", arm, re.MULTILINE))
    assert called <= {"memset", "memcpy"}, called  # nothing that nobody has
    ptx = cross.assembly(text.gpu, GPU, text.opt)
    assert f".entry {text.name}_0(" in ptx
    assert ".extern" not in ptx
    # every operation says how it rounds: `ptxas` may fuse or approximate nothing
    assert not re.search(r"\b(add|sub|mul)\.f(32|64)|\.approx|\.ftz|div\.full", ptx)
    return ptx


def accepted(modules: Sequence[str], arch: str = "sm_90") -> None:
    """`ptxas` accepts these modules of PTX, several at a time as one."""
    assembler = ptxas()
    if assembler is None:
        return
    alone = [m for m in modules if ".func" in m]  # whose functions have names of their own alone
    together = [m for m in modules if ".func" not in m]
    batches = [[m] for m in alone] + [together[k : k + 40] for k in range(0, len(together), 40)]
    with tempfile.TemporaryDirectory() as folder:
        for batch in batches:
            source = Path(folder, "all.ptx")
            head, *rest = batch
            source.write_text("\n".join([head, *(HEADER.sub("", m) for m in rest)]))
            command = [assembler, f"-arch={arch}", "-O1", source, "-o", Path(folder, "all.cubin")]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert not done.returncode, done.stdout + done.stderr


def elsewhere(several: Iterable[Iterable[Store]]) -> int:
    """Both machines take the plans of these groups of statements; how many plans there were."""
    found: dict[str, Texts] = {}
    for statements in several:
        for nests in nests_of(statements):
            text = texts(nests)
            found[text.name] = text
    accepted([assembled(text) for text in found.values()])
    return len(found)


def keep(text: Texts, folder: Path) -> None:
    """Write a plan's texts down for `elsewhere_all`; many processes may."""
    path = folder / f"{text.name}.json"
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as stream:
            json.dump(text, stream)
        Path(stream.name).replace(path)


def elsewhere_all(folder: Path) -> int:
    """Both machines take all plans kept in a folder; how many those were."""
    paths = sorted(folder.glob("*.json"))
    for k in range(0, len(paths), 40):
        modules = []
        for path in paths[k : k + 40]:
            try:
                modules.append(assembled(Texts(*json.loads(path.read_text()))))
            except Exception as error:
                error.add_note(f"the plan is kept in {path}")
                raise
        accepted(modules)
    return len(paths)
