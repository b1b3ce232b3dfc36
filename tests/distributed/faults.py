"""A job of which one rank fails in a way that the arguments choose; run by `test_faults.py`.

python faults.py HOW RANK STEP
"""

import ctypes
import os
import signal
import socket
import sys
import time

import numpy as np

import gnomon as mx
from gnomon import ranks
from gnomon.launch.rank import own_rank


def fail(store, how):
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif how == "raise":
        raise ValueError("no such picture")
    elif how == "exit":
        sys.exit(3)
    elif how in ("hang", "absent"):  # what comes after it would be waited for, too
        time.sleep(1000)
    elif how == "shape":
        store.init("other", mx.nd.zeros((3,)))
    elif how == "order":
        store.barrier()
    elif how == "sum":
        ranks.job.total("mean", np.zeros(3))
    elif how == "stuck":
        ctypes.PyDLL(None).sleep(1000)  # Python's lock is held: no thread of this rank goes on
    elif how == "link":
        for line in store._comm.watch._lines:
            line.link.shutdown(socket.SHUT_RDWR)


def main(how, who, when):
    if how == "late" and int(own_rank()) == who:
        time.sleep(1000)
    store = mx.kv.create("dist_sync")
    store.init(["w", "v"], [mx.nd.zeros((64, 64)), mx.nd.zeros((5,))])
    values = [mx.nd.ones((64, 64)), mx.nd.ones((5,))]
    outs = [mx.nd.zeros_like(v) for v in values]
    for step in range(200 if how == "none" else 10**9):
        if step == when:
            if store.rank == who:
                fail(store, how)
            elif how == "shape":
                store.init("other", mx.nd.zeros((4,)))
            elif how in ("sum", "absent"):
                ranks.job.total("mean", np.zeros(4))
        store.push(["w", "v"], values)
        store.pull(["w", "v"], out=outs)
        assert outs[1].asnumpy().tolist() == [store.num_workers] * 5


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
