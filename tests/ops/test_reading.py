"""The files of operators are read at the first question, and once more where that failed."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from gnomon.ops import registry

load = registry.load_module

def lacking(name):
    module = load(name)
    if name == "gnomon.ops.decompositions":  # as Python leaves what fails at its end
        del sys.modules[name], sys.modules["gnomon.ops"].decompositions
        raise MemoryError
    return module

registry.load_module = lacking
for ask in (registry.names, lambda: registry.find("relu")):
    try:
        ask()
    except MemoryError:
        print("lacking")
registry.load_module = load
found = registry.find("_linalg_potrf")
print(found is sys.modules[found.__module__].__dict__[found.__name__], registry.has("relu"))
try:
    registry.register(type(found.__name__, (found,), {}))
except Exception as error:
    print(error)
"""


def test_what_failed_halfway_is_read_again():
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wanted = ["lacking", "lacking", "True True", "operator '_linalg_potrf' is registered already"]
    assert done.stdout.splitlines() == wanted, done.stderr
