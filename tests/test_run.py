"""Programs written for MXNet and NumPy 1 run as they are: `gnomon run`, `import gnomon.compat`."""

import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

ROOT = str(Path(__file__).parent.parent)


def run(folder, *arguments, stdin=None, **environment):
    """The finished process of a command line of Python's in `folder`."""
    path = os.pathsep.join([ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path, **environment}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=env, stdin=stdin, capture_output=True, text=True, check=False
    )


@pytest.fixture
def write(tmp_path):
    def enter(name, text):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
        return tmp_path

    return enter


def test_a_program_as_its_users_write_it(write):
    write("helper.py", "import numpy as np\ndef zeros(): return np.zeros(2, dtype=np.bool)\n")
    folder = write(
        "train.py",
        """
        import sys
        import mxnet as mx
        import numpy as np
        from mxnet import autograd, gluon, nd
        from mxnet.gluon import nn
        from mxnet.gluon.block import HybridBlock
        import mxnet.ndarray as F
        from numpy import float as number
        import helper

        assert np.bool is bool and number is float and np.Inf > np.NINF
        assert np.product([2, 3]) == 6 and np.asscalar(np.ones(1)) == 1.0
        assert helper.zeros().dtype == np.bool_
        assert mx.__version__ == "1.9.1" and isinstance(nn.Dense(1), HybridBlock)
        net = nn.Dense(1)
        net.initialize(mx.init.One())
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        x = nd.array(np.arange(4).reshape(2, 2).astype(np.float))
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(2)
        weight = net.weight.data().asnumpy().astype(np.float)
        print(__name__, sys.argv[1:], np.round_(weight, 1).tolist())
        """,
    )
    done = run(folder, "-m", "gnomon", "run", "train.py", "--lr", "-m", "3")
    assert done.stdout == "__main__ ['--lr', '-m', '3'] [[0.0, -0.6]]\n", done.stderr


def test_libraries_beside_see_the_real_numpy(write):
    write(
        "lib/site-packages/other.py", "import numpy as np\nREAL = np.bool, hasattr(np, 'float')\n"
    )
    folder = write(
        "own.py",
        """
        import sys
        sys.path.insert(0, "lib/site-packages")
        import numpy as np
        import other
        import scipy.special
        import importlib
        real = importlib.import_module("numpy")
        assert other.REAL == (real.bool, False) and real.bool is not bool
        assert np is not real and np.float32 is real.float32
        assert scipy.special.expit(0) == 0.5 and np.random.rand(2).shape == (2,)
        for name in ("nothing_of_the_kind", "set_numeric_ops"):
            try:
                getattr(np, name)
            except AttributeError as error:
                assert "numpy" in str(error).lower()
            else:
                raise AssertionError(name)
        """,
    )
    done = run(folder, "-m", "gnomon", "run", "own.py")
    assert (done.returncode, done.stderr) == (0, "")


def test_modules_and_packages(write):
    write("pkg/__init__.py", "import numpy as np\nKIND = np.int\n")
    write("pkg/part.py", "from . import KIND\nimport mxnet\nprint(KIND, __package__, __name__)\n")
    folder = write("pkg/__main__.py", "import sys\nfrom . import KIND\nprint(KIND, sys.argv[1:])\n")
    done = run(folder, "-m", "gnomon", "run", "-m", "pkg.part")
    assert done.stdout == "<class 'int'> pkg __main__\n", done.stderr
    done = run(folder, "-m", "gnomon", "run", "-m", "pkg", "a")
    assert done.stdout == "<class 'int'> ['a']\n", done.stderr
    done = run(folder, "-m", "gnomon", "run", "pkg/../pkg/part.py")
    assert done.returncode == 1


def test_archives_folders_and_standard_input(write):
    main = """
        import sys
        import mxnet as mx
        import numpy as np
        from helper import kind
        print(np.float is kind, sys.argv, mx.__version__)
        raise SystemExit(3)
    """
    folder = write("app/__main__.py", main)
    write("app/helper.py", "import numpy as np\nkind = np.float\n")
    with zipfile.ZipFile(folder / "app.zip", "w") as archive:
        for name in ("__main__.py", "helper.py"):
            archive.write(folder / "app" / name, name)
    for place, program in ((folder, "app.zip"), (folder, "app"), (folder / "app", ".")):
        done = run(place, "-m", "gnomon", "run", program, "x")
        assert done.returncode == 3, done.stderr
        assert done.stdout == f"True {[program, 'x']} 1.9.1\n"
    with (folder / "app" / "__main__.py").open() as text:
        done = run(folder / "app", "-m", "gnomon", "run", "-", stdin=text)
    assert (done.returncode, done.stdout) == (3, "True ['-'] 1.9.1\n")
    (folder / "data").write_bytes(b"PK\0\0")
    done = run(folder, "-m", "gnomon", "run", "data")
    assert done.returncode == 1
    assert "expected Python's source, or a zip archive with a __main__.py" in done.stderr


def test_ctrl_c_drops_what_has_not_begun(write):
    text = """
        import time
        from gnomon import engine

        engines = engine.get()
        v = engines.new_variable()
        for _ in range(3000):
            engines.push_sync(lambda run_ctx: time.sleep(0.01), None, (), (v,))
        raise KeyboardInterrupt
    """
    done = run(write("late.py", text), "-m", "gnomon", "run", "late.py")
    assert (done.returncode, "Ctrl-C ended the program: dropped" in done.stderr) == (130, True)


def test_an_error_shows_the_programs_own_lines(write):
    folder = write("bad.py", "import mxnet\n\ndef f():\n    raise ValueError('boom')\n\nf()\n")
    done = run(folder, "-m", "gnomon", "run", "bad.py")
    expected = (
        "Traceback (most recent call last):\n"
        '  File "bad.py", line 6, in <module>\n    f()\n'
        "  File \"bad.py\", line 4, in f\n    raise ValueError('boom')\n"
    )
    shown = "\n".join(x for x in done.stderr.splitlines() if set(x.strip()) - set("^~")) + "\n"
    assert shown == expected + "ValueError: boom\n"
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [("import sys; sys.exit(7)", 7), ("raise KeyboardInterrupt", 130), ("x = (", 1)],
)
def test_the_process_ends_as_pythons_would(write, text, code):
    done = run(write("end.py", text), "-m", "gnomon", "run", "end.py")
    assert done.returncode == code
    assert ("SyntaxError" in done.stderr) == (code == 1)


@pytest.mark.parametrize(
    ("what", "words"), [(["no.py"], "cannot read"), (["-m", "no.pe"], "no.pe")]
)
def test_what_is_not_there(tmp_path, what, words):
    done = run(tmp_path, "-m", "gnomon", "run", *what)
    assert done.returncode == 1
    assert done.stderr.startswith("gnomon: run: ")
    assert words in done.stderr


def test_compat_for_libraries(write):
    folder = write(
        "lib.py",
        """
        import gnomon.compat
        import mxnet as mx, gnomon
        import mxnet.gluon.nn, mxnet.optimizer.optimizer as optimizer
        from mxnet.io.utils import NDArrayIter
        from mxnet.gluon.model_zoo.vision.resnet import BasicBlockV1, resnet18_v1
        assert mx.nd is gnomon.nd and mxnet.gluon.nn is gnomon.gluon.nn
        assert gnomon.gluon.nn.__spec__.name == "gnomon.gluon.nn"
        assert optimizer.SGD is gnomon.optimizer.SGD and NDArrayIter is gnomon.io.NDArrayIter
        assert resnet18_v1 is gnomon.gluon.model_zoo.vision.resnet18_v1
        for name in ("mxnet.tvmop.opdef", "mxnet.np", "mxnet.contrib.quantization"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                assert name.split(".opdef")[0] in str(error), error
                assert "is not there yet (docs/differences.md" in str(error), error
        try:
            from mxnet.contrib import quantization
        except ImportError as error:
            assert "quantization is not there yet" in str(error), error
        try:
            import mxnet.nothing
        except ModuleNotFoundError as error:
            assert "mxnet.nothing" in str(error)
        import multiprocessing, urllib
        assert multiprocessing.pool.ThreadPool and urllib.request.urlopen
        assert not hasattr(multiprocessing, "nothing")
        try:
            mx.nothing
        except AttributeError:
            print("as it should be")
        """,
    )
    assert run(folder, "lib.py").stdout == "as it should be\n"


def test_modules_that_are_loaded_have_mxnets_names(write):
    folder = write(
        "own.py",
        """
        import sys

        import gnomon.gluon
        import gnomon.compat
        assert not [name for name in sys.modules if name.startswith("mxnet")]

        import mxnet
        assert sys.modules["mxnet.gluon"] is gnomon.gluon, "loaded before"
        import gnomon.symbol
        import gnomon.autograd
        for name in ("autograd", "gluon", "ndarray", "symbol"):
            assert sys.modules[f"mxnet.{name}"] is sys.modules[f"gnomon.{name}"], name
        assert gnomon.symbol.__spec__.name == "gnomon.symbol"
        assert mxnet.nd is mxnet.ndarray is gnomon.ndarray and "nd" in vars(mxnet)
        """,
    )
    done = run(folder, "own.py")
    assert (done.returncode, done.stderr) == (0, "")


def test_arrays_of_one_element_convert(write):
    folder = write(
        "one.py",
        """
        import math
        import pickle
        import numpy as np
        assert float(np.ones((1, 1))) == 1
        import mxnet as mx

        x = mx.nd.array([[2.0], [3.0]]).asnumpy()
        assert "%d %.1f" % (x[0], x[1] + 1) == "2 4.0" and math.sqrt(x[1:] + 1) == 2
        assert complex(x[0]) == 2 and int(x[:1]) == 2 and float(x.sum(axis=0)) == 5
        assert type(x.sum()) is type(x.mean()) is np.float32 and hash(x.max()) == 3
        assert repr(x) == "array([[2.],\\n       [3.]], dtype=float32)"
        assert type(pickle.loads(pickle.dumps(x))) is np.ndarray
        assert type(x) is type(x[:1] * 2) is type(mx.nd.ones((1, 1)).asnumpy()) is np.ndarray
        a = np.zeros(2)
        a[0] = x[1]
        assert int(np.matrix([[2.5]])) == float(np.array([[2]], object)) == 2
        try:
            float(x)
        except TypeError as error:
            print("array" in str(error))
        try:
            np.ndarray.other = None
        except TypeError as error:
            print("immutable" in str(error))
        """,
    )
    done = run(folder, "-m", "gnomon", "run", "one.py")
    assert done.stdout == "True\nTrue\n", done.stderr


@pytest.mark.parametrize("how", ["spawn", "forkserver", "fork"])
def test_processes_that_a_program_starts(write, how):
    write("helper.py", "import numpy as np\nKIND = np.int\n")
    folder = write(
        "start.py",
        f"""
        import multiprocessing as mp
        import numpy as np
        import helper
        KIND = np.float

        def work(x):
            import mxnet
            return mxnet.__version__, KIND is float, helper.KIND is int, np.bool(x)

        if __name__ == "__main__":
            with mp.get_context({how!r}).Pool(1) as pool:
                print(pool.map(work, [1]))
        """,
    )
    for what in (["start.py"], ["-m", "start"]):
        done = run(folder, "-m", "gnomon", "run", *what)
        assert done.stdout == "[('1.9.1', True, True, True)]\n", done.stderr


def test_cells_of_a_notebook(write):
    write("helper.py", "import numpy as np\nKIND = np.int\n")
    folder = write(
        "shell.py",
        """
        from types import SimpleNamespace
        from gnomon import run

        names = {"__name__": "__main__"}
        run.load_ipython_extension(SimpleNamespace(user_ns=names))
        exec("import numpy as np, mxnet as mx, helper", names)
        exec("print(np.float, helper.KIND, float(mx.nd.ones((1, 1)).asnumpy()))", names)
        """,
    )
    assert run(folder, "shell.py").stdout == "<class 'float'> <class 'int'> 1.0\n"


def test_cells_of_a_kernel_that_is_started_so(write):
    """IPython loads the extension that its option names; `%load_ext` may name it again."""
    folder = write(
        "ipykernel_launcher.py",
        """
        import sys
        from importlib import import_module
        from types import SimpleNamespace

        names = {"__name__": "__main__"}
        *given, extension = sys.argv[1:]
        finders = len(sys.meta_path)
        import_module(extension.removeprefix("--ext=")).load_ipython_extension(
            SimpleNamespace(user_ns=names)
        )
        exec("import numpy as np, mxnet as mx; print(np.float, mx.__version__)", names)
        print(given, len(sys.meta_path) - finders)
        """,
    )
    done = run(folder, "-m", "gnomon", "run", "-m", "ipykernel_launcher", "-f", "connection")
    assert done.stdout == "<class 'float'> 1.9.1\n['-f', 'connection'] 0\n", done.stderr


def test_libraries_are_not_a_programs_own_files(write):
    folder = write("own.py", "import numpy as np\nprint(np.float)\n")
    path = os.pathsep.join([ROOT, str(folder)])
    done = run("/", "-m", "gnomon", "run", "-m", "own", PYTHONPATH=path)
    assert done.stdout == "<class 'float'>\n", done.stderr


def test_starting_costs_no_numpy(write):
    folder = write(
        "idle.py", "import sys\nprint('numpy' in sys.modules, 'llvmlite' in sys.modules)\n"
    )
    assert run(folder, "-m", "gnomon", "run", "idle.py").stdout == "False False\n"


def test_installed_packages_that_use_mxnet_know_numpy_1(write):
    """Others notice nothing."""
    write("site-packages/uses/inner.py", "import numpy as np\nkind = np.bool\n")
    write(
        "site-packages/uses/__init__.py",
        """
        import mxnet
        import numpy as np
        kind = np.float
        """,
    )
    write("site-packages/other/__init__.py", "import numpy as np\nkind = hasattr(np, 'float')\n")
    text = """
        import uses, other
        from uses import inner
        print(uses.kind is float, inner.kind is bool, other.kind)
    """
    folder = write("program.py", text)
    path = os.pathsep.join([ROOT, str(folder / "site-packages")])
    done = run(folder, "-m", "gnomon", "run", "program.py", PYTHONPATH=path)
    assert done.stdout == "True True False\n", done.stderr


def test_an_error_in_an_imported_file_shows_no_frames_of_imports(write):
    write("part.py", "def f():\n    raise ValueError('here')\n\n\nf()\n")
    done = run(write("program.py", "import part\n"), "-m", "gnomon", "run", "program.py")
    assert done.returncode == 1
    lines = [line.strip() for line in done.stderr.splitlines()]
    files = [line.split('"')[1] for line in lines if line.startswith("File ")]
    assert [Path(f).name for f in files] == ["program.py", "part.py", "part.py"]


def test_lists_of_unlike_lengths_are_arrays_of_objects(write):
    text = """
        import numpy as np
        rows = np.array([[1, 2], [3]])
        np.save("x.npy", [[1, 2, 3], [4], []])
        kept = np.load("x.npy", allow_pickle=True)
        print(rows.dtype, rows.shape, list(rows), kept.shape, kept[0], np.array([[1], [2]]).shape)
        print(np.array([[[1], [1, 2]], [[3], [4, 5]]])[1, 1], np.asarray([[[1]], [1]]).shape)
        try:
            np.array([[1, 2], [3]], dtype=np.float32)
        except ValueError as error:
            print("ValueError")
        try:
            np.array([np.zeros((2, 3)), np.zeros((2, 4))])
        except ValueError as error:
            print("ValueError")
    """
    done = run(write("program.py", text), "-m", "gnomon", "run", "program.py")
    wanted = "object (2,) [[1, 2], [3]] (3,) [1, 2, 3] (2, 1)"
    wanted = [wanted, "[4, 5] (2, 1)", "ValueError", "ValueError"]
    assert done.stdout.splitlines() == wanted, done.stderr


def test_rarer_names_of_numpy_1(write):
    text = """
        import copy, pickle
        import numpy as np
        assert copy.copy(np) is np and pickle.loads(pickle.dumps(np)) is np
        assert np.array(np.ones(2), dtype="f", copy=False).dtype == np.float32
        assert np.cast["int32"]([1.5, 2]).tolist() == [1, 2]
        assert np.cast[np.float32](3).dtype == np.float32
        assert np.float64 in np.sctypes["float"] and np.nbytes[np.float32] == 4
        assert np.fromstring(b"\\x00\\x01", dtype=np.uint8).tolist() == [0, 1]
        assert np.fromstring("1 2", sep=" ").tolist() == [1, 2]
        assert np.obj2sctype(np.ones(1, "f")) is np.float32 and np.sctype2char("f4") == "f"
        assert np.issctype(np.int8) and not np.issctype(3)
        assert np.lib.pad([1], (1, 1), "constant").tolist() == [0, 1, 0] and np.lib.stride_tricks
        assert np.sum(x for x in [1, 2]) == 3 == np.reshape([1, 2, 3], newshape=(3, 1)).size
        assert np.math.factorial(4) == 24 and np.typeDict["float32"] is np.float32
        print("all there")
    """
    done = run(write("program.py", text), "-m", "gnomon", "run", "program.py")
    assert done.stdout == "all there\n", done.stderr


def test_errors_that_have_no_truth_value_are_shown_as_well(write):
    text = """
        class Odd(Exception):
            def __bool__(self):
                raise RuntimeError("asked")

        try:
            raise Odd("first")
        except Odd as error:
            raise ValueError("second") from error
    """
    done = run(write("program.py", text), "-m", "gnomon", "run", "program.py")
    assert done.stderr.splitlines()[-1] == "ValueError: second"
    assert "asked" not in done.stderr and "gnomon" not in done.stderr


def test_names_that_pythons_modules_had(write):
    """Also in a library that uses MXNet only later."""
    write("site-packages/uses/__init__.py", "from collections import Iterable\nimport mxnet\n")
    text = """
        import base64, collections, inspect, time
        from collections import Mapping
        from fractions import gcd
        import uses

        def f(a, b=2, *c, **d): pass
        def g(a, *, b): pass

        assert uses.Iterable is collections.abc.Iterable and issubclass(dict, Mapping)
        assert inspect.getargspec(f) == (["a", "b"], "c", "d", (2,))
        assert 0 < time.clock() < 1e3 and base64.encodestring(b"x") == b"eA==\\n"
        try:
            inspect.getargspec(g)
        except ValueError as error:
            print(gcd(12, 18), error)
    """
    folder = write("program.py", text)
    path = os.pathsep.join([ROOT, str(folder / "site-packages")])
    done = run(folder, "-m", "gnomon", "run", "program.py", PYTHONPATH=path)
    assert done.stdout.startswith("6 getargspec: <function g at"), done.stderr


def test_numbers_in_lists_print_without_types(write):
    folder = write(
        "shown.py",
        """
        import mxnet as mx

        print([mx.nd.array([0.5]).asscalar()], end=" ")
        import numpy as np

        print((np.float32(0.25), np.int64(3)), repr(np.float64(2.0)))
        """,
    )
    done = run(folder, "-m", "gnomon", "run", "shown.py")
    assert done.stdout == "[0.5] (0.25, 3) 2.0\n", done.stderr
