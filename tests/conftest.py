"""What holds for every test: repeatable random cases, and no state kept in the working tree."""

import gc
import logging
import os
import sys
import tempfile

import pytest
from hypothesis import settings

from gnomon.engine import native_behind
from gnomon.executor import repush
from gnomon.ndarray.lazy import fusion_group, native_pend, repeat
from gnomon.runtime.libraries.dnn.library import why_not
from gnomon.runtime.statements import fields

# run by hand, as they need MXNet, and programs for `gnomon run`
collect_ignore_glob = ["**/make*.py", "programs/*"]

settings.register_profile("gnomon", deadline=None, database=None, derandomize="CI" in os.environ)
settings.load_profile("gnomon")

# every run starts without kernels and byte code of earlier ones; all its processes share a folder,
# which goes with the first of them: a program that a test starts reads what others have compiled.
# Where GNOMON_TESTS_KEEP names a folder, it stays: random programs by the thousand meet in each run
# the kernels of the runs before, and spend their time on what is new
if "PYTEST_XDIST_WORKER" not in os.environ:
    _folder = os.environ.get("GNOMON_TESTS_KEEP")
    if _folder is None:
        _made = tempfile.TemporaryDirectory(prefix="gnomon-tests-", ignore_cleanup_errors=True)
        _folder = _made.name
    os.environ["GNOMON_CACHE_DIR"] = _folder
    os.environ["PYTHONPYCACHEPREFIX"] = f"{_folder}/code"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # without byte code, `import gnomon` takes 2 s
os.environ["GNOMON_TELL_COMPILING"] = "0"  # what a slow machine is told would be in the log

# the tests of oneDNN's own steps need its library, and that the system's libgomp; all others pass
# by the fallback too
_no_onednn = why_not()
collect_ignore = ["runtime/test_dnn.py"] if _no_onednn else []

# there are streams where threads can sleep on a word of memory
if sys.platform != "linux":
    collect_ignore += ["engine/test_behind.py", "ndarray/test_behind.py", "runtime/test_stream.py"]

if not fields.readable():
    collect_ignore += ["shadow/test_quick.py"]


@pytest.fixture(autouse=True, scope="session")
def what_comes_again_is_compiled():
    """So that tests of few rounds run it both ways: as single operators, and natively."""
    fusion_group.OFTEN = 1
    repush.repush.worth = repeat.repeater.worth = native_behind.settling.worth = 1
    native_pend.due.worth = 1


def pytest_runtest_setup():
    """Logging keeps a handler's lock where a signal's handler raised amid it in an earlier test."""
    for handler in logging.getLogger().handlers:
        handler.createLock()


def leave_alone():
    """Let the collector pass over all that is there now."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish():
    """All tests and their modules stay to the end: a pass over them takes 0.4 s."""
    leave_alone()


@pytest.fixture(scope="module")
def only_what_is_new_is_collected():
    """For files that collect often: not through all that the tests before them have left."""
    leave_alone()


def pytest_collection_modifyitems(config, items):
    """Leave out what is about native code where none is served."""
    left = [] if fields.readable() else [e for e in items if e.get_closest_marker("native")]
    config.hook.pytest_deselected(items=left)
    items[:] = [e for e in items if e not in left]


def pytest_report_header():
    return f"without tests/runtime/test_dnn.py: {_no_onednn}" if _no_onednn else []
