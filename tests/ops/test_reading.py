"""The file of an operator is read at the first question, and once more where that failed."""

from __future__ import annotations

import subprocess
import sys

FAILING = """
import sys
from gnomon.ground import folder_registry
from gnomon.ops import registry

load = folder_registry.load_module

def lacking(name):
    module = load(name)
    if name == "gnomon.ops.decompositions":  # as Python leaves what fails at its end
        del sys.modules[name], sys.modules["gnomon.ops"].decompositions
        raise MemoryError
    return module

folder_registry.load_module = lacking
for ask in (registry.names, lambda: registry.find("relu")):
    try:
        ask()
    except MemoryError:
        print("lacking")
folder_registry.load_module = load
found = registry.find("_linalg_potrf")
print(found is sys.modules[found.__module__].__dict__[found.__name__], registry.has("relu"))
try:
    registry.register(type(found.__name__, (found,), {}))
except Exception as error:
    print(error)
"""


INDEXED = """
import sys
from gnomon.ground import folder_registry
from gnomon.ops import registry

def loaded():
    return [n for n in ("reduce", "nn.pooling", "linalg") if f"gnomon.ops.{n}" in sys.modules]

print(registry.find("sum").name, loaded())
try:
    own = {"__module__": "own", "name": "Pooling"}
    registry.register(type("Pooling", (registry.find("sum"),), own))
except Exception as error:
    print(error, loaded())
folder_registry._files()["gnomon.ops", "linalg_potrf"] = "gnomon.ops.gone"  # as files are moved
folder_registry._files()["gnomon.ops", "relu"] = "gnomon.ops.nn.pooling"
print(registry.has("relu"), registry.has("linalg_potrf"), registry.has("no such"), loaded())
"""


AGAIN = """
import warnings
import gnomon as mx
from gnomon.metric.base import METRICS

def register(name, *given, **named):
    if name == "f1":
        raise KeyboardInterrupt
    return type(METRICS).register(METRICS, name, *given, **named)

warnings.simplefilter("error")
METRICS.register = register
try:
    mx.metric.create("f1")
except KeyboardInterrupt:
    print("interrupted")
del METRICS.register
for name in ("f1", "acc"):
    print(mx.metric.create(name).name)
"""


def printed(program: str) -> list[str]:
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_failed_halfway_is_read_again():
    wanted = ["lacking", "lacking", "True True", "operator '_linalg_potrf' is registered already"]
    assert printed(FAILING) == wanted


def test_a_class_that_is_read_again_is_no_other_one():
    assert printed(AGAIN) == ["interrupted", "f1", "accuracy"]


def test_an_operator_is_found_by_its_file_or_without():
    assert printed(INDEXED) == [
        "sum ['reduce']",
        "operator 'Pooling' is registered already ['reduce', 'nn.pooling']",
        "True True False ['reduce', 'nn.pooling', 'linalg']",
    ]
