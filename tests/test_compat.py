"""What `import mxnet` gets: gnomon's own modules, and classes of which libraries see the names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent

PROGRAM = """
import pickle
import gnomon

early = gnomon.nd.ones((2,))
import gnomon.compat
import mxnet as mx

for x in (early, mx.nd.ones((2,))):
    assert str(type(x)) == "<class 'mxnet.ndarray.ndarray.NDArray'>"
    assert type(x).__module__.split(".")[0] == "mxnet"
    assert b"mxnet" not in pickle.dumps(x)
print(pickle.loads(pickle.dumps(x)).asnumpy().tolist())
"""

# the paths come before the names, so that each could have been loaded a second time
SAME = """
from mxnet.context import cpu
import mxnet as mx
import mxnet.gluon.nn.basic_layers, mxnet.gluon.trainer, mxnet.module.module
import mxnet.ndarray.ndarray, mxnet.optimizer.contrib, mxnet.symbol.symbol

assert mx.nd.ones((2,), ctx=cpu()).context == cpu()
assert mxnet.ndarray.ndarray.NDArray is mx.nd.NDArray
assert mxnet.symbol.symbol.Symbol is mx.sym.Symbol
assert mxnet.gluon.nn.basic_layers.Dense is mx.gluon.nn.Dense
assert mxnet.gluon.trainer.Trainer is mx.gluon.Trainer
assert mxnet.module.module.Module is mx.mod.Module
print(mx.nd.NDArray.__module__, mx.__path__)
"""


def outcome(folder, *arguments, path=()):
    """What a command line of Python's prints in `folder`, modules being looked for in `path`."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, ROOT]))}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def test_the_class_of_arrays_says_that_it_is_mxnets(tmp_path):
    assert outcome(tmp_path, "-c", PROGRAM) == ("[1.0, 1.0]\n", "")


CONVERTING = """
import numpy as np
import gnomon

x = gnomon.nd.ones((1, 1)).asnumpy()
print(float(x), type(x) is np.ndarray)
import gnomon.compat
import mxnet as mx
x = mx.nd.ones((1, 1)).asnumpy()
print(float(x), type(x) is np.ndarray, float(np.ones((1, 1))))
"""


def test_arrays_of_one_element_convert_in_the_process_once_mxnet_is_imported(tmp_path):
    plain = tuple(int(part) for part in np.__version__.split(".")[:2]) < (2, 4)
    out, _ = outcome(tmp_path, "-W", "ignore", "-c", CONVERTING)
    assert out == f"1.0 {plain}\n1.0 True 1.0\n"


@pytest.mark.parametrize("start", [["-m", "gnomon", "run", "same.py"], ["same.py"]])
def test_an_installed_gnomon_is_loaded_once(tmp_path, start):
    """Its files are then among those of packages that may use MXNet."""
    packages = tmp_path / "site-packages"
    unneeded = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "gnomon", packages / "gnomon", ignore=unneeded)
    (tmp_path / "same.py").write_text(f"import gnomon.compat\n{SAME}")
    printed = f"mxnet.ndarray.ndarray {[str(packages / 'gnomon')]}\n"
    assert outcome(tmp_path, *start, path=[packages]) == (printed, "")


@pytest.mark.parametrize("place", ["", "site-packages"])
def test_another_mxnet_is_passed_over(tmp_path, place):
    """One beside the program, and an installed one."""
    other = tmp_path / place / "mxnet"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("__version__ = 'other'\n")
    (tmp_path / "own.py").write_text("import mxnet\nprint(mxnet.__version__, mxnet.nd.__name__)\n")
    got = outcome(tmp_path, "-m", "gnomon", "run", "own.py", path=[tmp_path / place])
    assert got == ("1.9.1 gnomon.ndarray\n", "")
