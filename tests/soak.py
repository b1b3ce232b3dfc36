"""Mixed work for as long as wanted, with what the process holds: `python tests/soak.py SECONDS`.

Arrays of changing shapes, gradients, custom operators, training by Module, prediction, files,
random draws and expressions, in turn. Prints a row every so often, and ends with an error when the
memory of the last third of the time is more than that of the first third by more than `SLACK`.
"""

from __future__ import annotations

import gc
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import gnomon as mx
from gnomon import shadow
from gnomon.runtime.devices import pool

SLACK = 8 << 20  # bytes
ROWS = 30


class Twice(mx.operator.CustomOp):
    """Work that the engine's workers do."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("soak_twice")
class TwiceProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Twice()


def resident() -> int:
    """Bytes of memory that the process has in use now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) << 10
    raise RuntimeError("this system does not say how much memory a process has")


class Work:
    """What is done, each method once a round; shapes come from a small set, as in real programs."""

    def __init__(self, folder: Path) -> None:
        self.rng = random.Random(0)
        self.path = str(folder / "arrays.params")
        self.square = shadow.Tensor(np.ones((60, 60), "f"))
        data, label = np.random.rand(64, 20).astype("f"), np.random.randint(0, 3, 64).astype("f")
        self.batches = mx.io.NDArrayIter(data, label, 16)
        net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=16, name="a")
        net = mx.sym.Custom(data=mx.sym.relu(net), op_type="soak_twice", name="custom")
        net = mx.sym.FullyConnected(net, num_hidden=3, name="b")
        self.module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"), context=mx.cpu())
        self.module.fit(self.batches, num_epoch=1)

    def shape(self) -> tuple[int, ...]:
        return self.rng.choice([(7,), (64, 33), (3, 5, 7), (1000,), (1,), (300, 300)])

    def arrays(self) -> None:
        x = mx.nd.random.normal(shape=self.shape())
        y = (x * 2 + 1).exp() / (1 + x.abs())
        y[:] = y - x
        y += 1
        float(y.sum().asscalar()) if y.size else 0
        y.reshape(-1)[:2].asnumpy()

    def gradients(self) -> None:
        x = mx.nd.ones((20, 30))
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.Custom(mx.nd.dot(x, x.T).tanh(), op_type="soak_twice")
        y.backward()
        x.grad.wait_to_read()

    def training(self) -> None:
        self.batches.reset()
        for batch in self.batches:
            self.module.forward_backward(batch)
            self.module.update()

    def prediction(self) -> None:
        self.batches.reset()
        self.module.predict(self.batches).asnumpy()
        self.module.score(self.batches, "acc")

    def files(self) -> None:
        mx.nd.save(self.path, {"x": mx.nd.ones(self.shape()), "y": mx.nd.zeros((3,))})
        mx.nd.load(self.path)

    def expressions(self) -> None:
        x = shadow.Tensor(np.ones((50, 60), "f"))
        out = shadow.TensorContainer((50, 60))
        out[:] = shadow.fn.exp(x * self.rng.random()) + out
        out += shadow.dot(x, self.square)

    def failures(self) -> None:
        try:
            mx.nd.ones((2, 3)) + mx.nd.ones((4, 5))
        except mx.MXNetError:
            return
        raise AssertionError("shapes that differ were added")


def soak(seconds: float) -> list[tuple[int, int, int]]:
    """Rows of (rounds, resident bytes, bytes in use of the pool), from after the first tenth on."""
    rows: list[tuple[int, int, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        work = Work(Path(folder))
        names = "arrays gradients training prediction files expressions failures".split()
        duties: list[Callable[[], None]] = [getattr(work, name) for name in names]
        begin, rounds = time.monotonic(), 0
        while (spent := time.monotonic() - begin) < seconds:
            for duty in duties:
                duty()
            rounds += 1
            if spent > seconds * (0.1 + 0.9 * len(rows) / ROWS):
                mx.nd.waitall()
                gc.collect()
                rows.append((rounds, resident(), pool.stats().used))
                mib = [held / 2**20 for held in rows[-1][1:]]
                print(f"{rounds:8d} rounds, resident {mib[0]:8.2f} MiB, pool {mib[1]:8.2f} MiB")
    return rows


def main() -> None:
    """Soak, and say whether memory stayed flat."""
    rows = soak(float(sys.argv[1]))
    third = max(1, len(rows) // 3)
    for name, column in (("resident", 1), ("in use of the pool", 2)):
        first = max(row[column] for row in rows[:third])
        last = max(row[column] for row in rows[-third:])
        print(f"{name}: {first / 2**20:.2f} MiB in the first third, {last / 2**20:.2f} in the last")
        if last > first + SLACK:
            sys.exit(f"{name}: memory grew by {(last - first) / 2**20:.2f} MiB")


if __name__ == "__main__":
    main()
