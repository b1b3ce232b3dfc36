"""Statements that write into an array while recording, and what gradients come of them."""

from __future__ import annotations

from typing import Any

import numpy as np

#: what is written into: a variable, what was computed from one, neither; `read` before, or not
KINDS = ("variable", "computed", "computed, read", "plain", "plain, read")

#: of `w`, written into, and the variable `z`, both of shape (2,); `d` is no variable
STATEMENTS = """
w[0:1] = z[0:1]
w[0] = z[0]
w[0:1] = d[0:1]
w[0:1] = 1
w[0:1,] = z[0:1]
w[0:1] = np.array([1], 'float32')
w[:] = z
w[...] = z
w[0:2] = z
w[-2:] = z
w[None] = z
w[()] = z
w[::-1] = z
w[:] = z * 2
w[:] = z[0:1]
w[:] = z[0]
w[:] = z.astype('float64')
w[:] = d
w[:] = 1
w[:] = [1, 2]
w[:] = np.float32(3)
w[:] = w
w[:] = w * 3
w[:] = w[::-1]
w[[0]] = z[0:1]
w[[0, 1]] = z
w[[0]] = 1
w[[0]] = np.array([1], 'float32')
w[nd.array([0])] = 1
w[np.array([True, True])] = z
w[nd.array([1, 0])] = 1
w += z
w += 1
w -= d
w *= z
w %= 2
w[0:1] += 1
t = w[0:1]; t += 1
t = w[0:1]; t += z[0:1]
t = w[0:1]; t[:] = 1
t = w[0:1]; t[:] = z[0:1]
w.reshape((1, 2))[:] = 1
w.detach()[:] = z
w.detach()[0:1] = z[0:1]
t = w.detach(); t += 1
z.copyto(w)
d.copyto(w)
nd.exp(z, out=w)
nd.exp(w, out=w)
nd.ones((2,), out=w)
nd.full((2,), 3, out=w)
nd.concat(z[0:1], z[0:1], dim=0, out=w)
nd.split(z, num_outputs=2, axis=0, out=[w[0:1], w[1:2]])
nd.add_n(z, z, out=w)
nd.elemwise_add(w[:], z, out=w)
nd.elemwise_mul(w, z, out=w)
nd.broadcast_maximum(w, z, out=w)
nd.broadcast_to(d[0:1], shape=(2,), out=w)
nd.BlockGrad(z, out=w)
nd.sum(z, axis=0, keepdims=True, out=w[0:1])
nd.sgd_update(w, z, lr=1, out=w)
nd.sgd_update(w, d, lr=1, out=w)
mx.init.One()('w_weight', w)
store = mx.kv.create('local'); store.init(0, d); store.pull(0, out=w)
mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=1))(0, d, w)
mx.autograd.set_recording(False); w[0:1] = z[0:1]; mx.autograd.set_recording(True)
mx.autograd.set_recording(False); w[:] = z; mx.autograd.set_recording(True)
mx.autograd.set_recording(False); w += z; mx.autograd.set_recording(True)
w[:] = np.array([1, 2], 'float32')
w[...] = np.array([[1, 2]], 'float64')
w[0:2] = np.array([5], 'float32')
""".strip().splitlines()


def run(mx: Any, kind: str, statement: str) -> list[Any] | None:
    """What `w` is, what is computed from it, and the gradients of `z` and `w`.

    None where the statement is refused. The value is None, too, where it has no gradient.
    """
    nd = mx.nd
    z, w, d = nd.array([3, 4]), nd.array([1, 2]), nd.array([5, 7])
    names = {"mx": mx, "nd": nd, "np": np, "z": z, "d": d}
    z.attach_grad()
    if kind == "variable":
        w.attach_grad()
    with mx.autograd.record():
        names["w"] = w = z * 2 if kind.startswith("computed") else w
        read = w * w * z if kind.endswith("read") else 0
        try:
            exec(statement, names)
        except mx.MXNetError:
            return None
        finally:
            mx.autograd.set_recording(True)
        y = names["w"] ** 2 + read
    values = names["w"].asnumpy().tolist()
    try:
        y.backward()
    except mx.MXNetError:
        return [values, None]
    grads = [None if x.grad is None else x.grad.asnumpy().tolist() for x in (z, names["w"])]
    return [values, y.asnumpy().tolist(), *grads]
