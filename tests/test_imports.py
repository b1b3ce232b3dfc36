"""What a program imports: the files of what it names, and nothing for what it does not use."""

from __future__ import annotations

import subprocess
import sys

OWN = """
import sys
import gnomon as mx

def loaded(folder):
    return sorted(n.rpartition(".")[2] for n in sys.modules if n.startswith(f"gnomon.{folder}."))

packages = mx.optimizer, mx.metric, mx.init
before = loaded("optimizer"), loaded("metric"), loaded("initializer")
made = mx.optimizer.create("ADAM"), mx.metric.create("mae"), mx.init.create("bilinear")
print([type(each).__name__ for each in made])
after = loaded("optimizer"), loaded("metric"), loaded("initializer")
print([sorted({*a} - {*b}) for a, b in zip(after, before)])

@mx.optimizer.register
class Nadam(mx.optimizer.Optimizer):
    pass

print(type(mx.optimizer.create("nadam")).__module__, mx.optimizer.Nadam.__module__)
print("lars" in mx.optimizer.Optimizer.opt_registry, "none" in mx.optimizer.Optimizer.opt_registry)
print(len(mx.registry.get_registry(mx.metric.EvalMetric)) > 20, mx.optimizer.sgd.SGD.__name__)
"""

DRAWN = """
import sys
import gnomon as mx

net = mx.gluon.nn.Dense(3)
net.initialize(mx.init.Xavier())
net(mx.nd.ones((2, 4))).wait_to_read()
unused = "numpy.random", "gnomon.shadow", "gnomon.module", "gnomon.executor.report.profile"
print([name for name in unused if name in sys.modules])
"""

STAR = """
import sys
import gnomon as mx
import gnomon.compat

def starred(module):
    found = {}
    exec(f"from {module} import *", found)
    return {name for name in found if name != "__builtins__"}

packages = mx.init, mx.metric, mx.optimizer, mx.nd, mx.sym, mx.mod, mx.io, mx.runtime
spaces = [getattr(p, s) for p in (mx.nd, mx.sym) for s in ("contrib", "linalg", "random", "op")]
for module in (*packages, *spaces, mx.lr_scheduler, mx.gluon.nn, mx.gluon.rnn, mx, mx.gluon):
    shown = {name for name in dir(module) if not name.startswith("_")}
    if shown & {"TYPE_CHECKING", "finding", "public", "resolving", "top"}:
        print("helpers", module.__name__)
    for name in (module.__name__, module.__name__.replace("gnomon", "mxnet")):
        if starred(name) != shown:
            print(name, starred(name) ^ shown)

asked = {"initializer": "Xavier", "metric": "Accuracy", "optimizer": "SGD", "runtime": "Features",
         "symbol": "FullyConnected", "ndarray": "relu", "ndarray.linalg": "gemm2",
         "ndarray.random": "shuffle", "symbol.random": "shuffle",
         "contrib.ndarray": "CTCLoss", "contrib.symbol": "CTCLoss", "module": "module"}
print([name for module, name in asked.items() if name not in starred(f"mxnet.{module}")])
print(sorted(starred("mxnet.lr_scheduler") | {*dir(mx.lr_scheduler)}))
"""

UNREAD = """
import sys
import gnomon as mx
from gnomon.initializer import Initializer
from gnomon import metric, ndarray, symbol
print([n for n in ("gnomon.metric.regress", "gnomon.initializer.structured") if n in sys.modules])
print("relu" in vars(ndarray), "relu" in vars(symbol))
"""


def printed(program: str) -> list[str]:
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_file_is_imported_for_its_names():
    done = subprocess.run([sys.executable, "-c", OWN], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['Adam', 'MAE', 'Bilinear']",
        "[['adaptive'], ['regress'], ['structured']]",
        "__main__ gnomon.optimizer.nadam",
        "True False",
        "True SGD",
    ]


def test_initial_weights_need_no_tensors_and_none_of_numpys_random_numbers():
    assert printed(DRAWN) == ["[]"]


def test_a_star_takes_what_is_found_when_asked_and_no_helpers():
    schedules = ["Cosine", "Factor", "LR", "MultiFactor", "Poly"]
    assert printed(STAR) == ["[]", str([f"{name}Scheduler" for name in schedules])]


def test_a_plain_import_looks_for_no_names():
    assert printed(UNREAD) == ["[]", "False False"]
