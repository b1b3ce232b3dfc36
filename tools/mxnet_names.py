"""Write `gnomon/data/mxnet-names.txt`: MXNet 1.9.1's public names, from tables of its API.

    python tools/mxnet_names.py FOLDER

FOLDER holds `namespaces-1.9.1.json`, `python-api-1.9.1.json`, `operators-1.9.1.json` and
`aliases-1.9.1.json`. The line `operators` has the names that model files use. Names of what is out
of gnomon's scope, and of helpers that a module only imports, stay out.
"""

import json
import re
import sys
from pathlib import Path

PUBLIC = """
base callback context contrib.amp contrib.autograd contrib.io contrib.svrg_optimization
contrib.tensorboard contrib.text.embedding contrib.text.utils contrib.text.vocab engine error
executor_manager gluon gluon.block gluon.contrib.cnn gluon.contrib.data gluon.contrib.estimator
gluon.contrib.nn gluon.contrib.rnn gluon.data gluon.data.vision gluon.data.vision.transforms
gluon.loss gluon.model_zoo.vision gluon.nn gluon.parameter gluon.rnn gluon.trainer gluon.utils
image initializer io kvstore log lr_scheduler metric model module monitor name operator optimizer
profiler random recordio registry rnn rtc runtime test_utils util visualization
""".split()
TABLES = ("operators", "aliases")
SPACES = "contrib image linalg op random sparse".split()
MODULES = "executor_manager image onnx rtc contrib".split()  # the table of the top lacks them
OUT_OF_SCOPE = re.compile(
    r"quanti[sz]|calib|intgemm|^_npi?x?_|^_np_|^np_|Horovod|BytePS|MXDataIter|mx_float_p"
    r"|^_(CachedOp|CustomFunction|NDArray|Native|NoGradient|CrossDeviceCopy)"
)
HELPERS = """
Context NDArray CSRNDArray Symbol Executor array arange zeros ones check_call c_str c_str_array
c_array c_array_buf c_handle_array py_str classproperty with_metaclass cpu current_context
set_module get_last_ffi_error load is_np_array is_np_shape
""".split()
OWNERS = "ndarray", "symbol"  # of those among the helpers that are no helpers there


def main(folder: Path) -> None:
    """Write the file."""
    spaces = json.loads((folder / "namespaces-1.9.1.json").read_text())
    api = json.loads((folder / "python-api-1.9.1.json").read_text())
    table = {"": MODULES + list(api["mxnet"])}
    for package in ("ndarray", "symbol"):
        table[package] = spaces[package]
        table |= {f"{package}.{s}": spaces[f"{package}.{s}"] for s in SPACES}
    table |= {name: list(api.get(f"mxnet.{name}", ())) for name in PUBLIC}
    registered = [json.loads((folder / f"{n}-1.9.1.json").read_text()) for n in TABLES]
    operators = {n for names in registered for n in names if not OUT_OF_SCOPE.search(n)}
    lines = [f"operators: {' '.join(sorted(operators))}"]
    for module, names in sorted(table.items()):
        helpers = set() if module in OWNERS else {*HELPERS}
        own = {n for n in names if n[0] != "_" and not OUT_OF_SCOPE.search(n)} - helpers
        lines.append(f"{module}: {' '.join(sorted(own))}".rstrip())
    target = Path(__file__).parent.parent / "gnomon" / "data" / "mxnet-names.txt"
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
