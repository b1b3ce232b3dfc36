"""What NVIDIA's headers say of the calls and numbers that gnomon uses, kept as `headers.json`.

    python -m tests.gpu.headers FOLDER...

writes that file from folders of headers, as NVIDIA's wheels have them: `include` of `nvidia/cudnn`,
`nvidia/cublas` and `nvidia/cuda_runtime`.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from pathlib import Path
from typing import Any

from gnomon.runtime.devices.cuda import cublas, cudnn, library

FILE = Path(__file__).with_name("headers.json")
CALLS = {**cublas.CALLS, **cudnn.CALLS, **library.CALLS}
#: the enumerations whose numbers stand in the code
ENUMS = (
    "cudnnDataType_t", "cudnnMathType_t", "cudnnTensorFormat_t", "cudnnConvolutionMode_t",
    "cudnnPoolingMode_t", "cudnnNanPropagation_t", "cudnnDeterminism_t", "cudnnStatus_t",
    "cublasComputeType_t", "cublasOperation_t", "cudaDataType",
    "CUmemLocationType", "CUmemAccess_flags",
)  # fmt: skip
SCALARS = {
    "int": ctypes.c_int, "size_t": ctypes.c_size_t, "longlongint": ctypes.c_longlong,
    "unsignedint": ctypes.c_uint, "unsignedchar": ctypes.c_ubyte,
    "unsignedlonglong": ctypes.c_ulonglong, "CUdeviceptr": ctypes.c_uint64,
    "float": ctypes.c_float, "double": ctypes.c_double,
}  # fmt: skip
POINTERS = (
    "Descriptor_t", "Handle_t", "Stream_t", "CUstream", "CUevent", "CUmodule", "CUfunction",
    "CUcontext", "CUmemoryPool", "CUgraph", "CUgraphExec",
)  # fmt: skip


def kept() -> dict[str, Any]:
    """The file: `calls` by name with the kinds of their arguments, `enums`, `structs`."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def kind(argument: str) -> str:
    """What is handed over: the scalar's name, or `pointer`; an enumeration is an `int`."""
    words = argument.replace("const", "").split()
    if "*" in argument or "[" in argument or words[0].endswith(POINTERS):
        return "pointer"
    name = "".join(words[:-1])
    return name if name in SCALARS else "int"


def field(declared: str) -> str:
    """A member of a structure: its kind, and how often it stands there."""
    name, _, count = declared.partition("[")
    return kind(name) + (f" * {count[:-1]}" if count else "")


def read(text: str) -> dict[str, Any]:
    """What a header says, of what is used."""
    text = re.sub(
        r"/\*.*?\*/|//[^\n]*|CUDNN_DEPRECATED_ENUM|__attribute__\S*", "", text, flags=re.S
    )
    calls, enums = {}, {}
    for name in CALLS:
        also = [name.removesuffix("_v2"), *re.findall(rf"#define\s+(\w+)\s+{name}\b", text)]
        found = re.search(rf"API\s+(?:{'|'.join([name, *also])})\s*\(([^;{{)]*)\)\s*;", text)
        if found:
            calls[name] = [kind(argument) for argument in found[1].split(",")]
    for name in ENUMS:
        found = re.search(rf"typedef enum[^{{}}]*\{{([^}}]*)\}}\s*{name}\b", text)
        if found:
            pairs = re.findall(r"(\w+)\s*=\s*(-?(?:0x)?[\da-fA-F]+)\b", found[1])
            enums[name] = {n: int(v, 0) for n, v in pairs}
    fields = re.findall(r"\{([^{}]*)\}\s*(cudnnConvolution\w+AlgoPerf_t)", text)
    structs = {name: list(map(field, body.split(";")[:-1])) for body, name in fields}
    return {"calls": calls, "enums": enums, "structs": structs}


def main(folders: list[str]) -> None:
    found: dict[str, dict[str, Any]] = {"calls": {}, "enums": {}, "structs": {}}
    for header in sorted(h for f in folders for h in Path(f).glob("*.h")):
        for part, what in read(header.read_text()).items():
            found[part].update(what)
    lines = [
        f'"{part}": {{\n'
        + ",\n".join(f' "{name}": {json.dumps(what[name])}' for name in sorted(what))
        + "\n}"
        for part, what in found.items()
    ]
    FILE.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
