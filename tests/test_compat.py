"""What libraries see of gnomon's classes where `import mxnet` gets them: `gnomon.compat`."""

import subprocess
import sys

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


def test_the_class_of_arrays_says_that_it_is_mxnets():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[1.0, 1.0]\n", "")
