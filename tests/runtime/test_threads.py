"""The pool: every task once, from many threads, nested, after a fork, for each kind of pool."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from gnomon.base import ParamError
from gnomon.runtime.execution import threads

from .jobs import Job

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

KINDS = {
    "own": "",
    "condition": "from gnomon.runtime.execution import thread_code as code\ncode.FUTEX = 0",
    "libgomp": "from gnomon import config; config.set('gomp', True)",
}


def has_libgomp() -> bool:
    try:
        return hasattr(ctypes.CDLL("libgomp.so.1"), "omp_pause_resource_all")
    except OSError:
        return False


def in_fresh_process(kind: str, body: str, **env: str) -> str:
    """What `body` prints in a process of its own with a pool of that kind; it must exit well."""
    root = Path(__file__).parents[2]
    script = "\n".join(
        ["import warnings; warnings.simplefilter('ignore')", KINDS[kind], textwrap.dedent(body)]
    )
    done = subprocess.run(
        [sys.executable, "-c", "from tests.runtime.jobs import Job\n" + script],
        cwd=root, env=os.environ | env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_signals_are_for_the_threads_of_python() -> None:
    """Handlers are run by the main thread: a worker that takes a signal only loses time."""
    body = """
    import os, signal
    from pathlib import Path
    from gnomon import config
    config.set("num_threads", 3)
    Job(50, doze=1000).run()
    blocked = {}
    for task in Path("/proc/self/task").iterdir():
        said = dict(x.split(":", 1) for x in (task / "status").read_text().splitlines())
        blocked[int(task.name)] = bool(int(said["SigBlk"], 16) >> signal.SIGPROF - 1 & 1)
    print(blocked.pop(os.getpid()), len(blocked) >= 2, all(blocked.values()))
    """
    assert in_fresh_process("own", body, OPENBLAS_NUM_THREADS="1") == "False True True"


@pytest.mark.parametrize("tasks", [0, 1, 2, 3, 7, 64, 1000])
def test_every_task_once(tasks: int) -> None:
    job = Job(tasks)
    job.run(3)
    assert job.complete(3)


def test_nested_jobs_run_in_sequence() -> None:
    job = Job(8, nested=True)
    job.run()
    assert job.complete()
    assert list(job.inner.words) == [8] * 4


def test_number_of_threads() -> None:
    before = threads.num_threads()
    try:
        for n in (1, 4, 2):
            threads.set_num_threads(n)
            assert threads.num_threads() == n
            job = Job(16, doze=3000)
            job.run()
            assert job.complete()
            assert job.used() <= n
            assert job.used() > 1 or n == 1
    finally:
        threads.set_num_threads(before)


@pytest.mark.parametrize("bad", [0, -1, 2.0, True, "2", None])
def test_refuses_bad_numbers(bad: object) -> None:
    before = threads.num_threads()
    with pytest.raises(ParamError, match="set_num_threads: argument 'n': expected an integer"):
        threads.set_num_threads(bad)  # type: ignore[arg-type]
    assert threads.num_threads() == before


def test_one_thread_runs_on_the_caller() -> None:
    job = Job(1)
    job.run()
    assert list(job.threads.words) == [threading.get_ident()]


def test_several_python_threads_at_once(kind: str) -> None:
    body = """
        import threading
        from gnomon.runtime.execution import threads
        threads.set_num_threads(4)
        jobs = [Job(n, nested=n == 5) for n in (1, 2, 3, 5, 8, 40)]
        workers = [threading.Thread(target=job.run, args=(2000,)) for job in jobs]
        for w in workers: w.start()
        for w in workers: w.join()
        print(threads.kind(), all(job.complete(2000) for job in jobs))
    """
    if kind == "libgomp" and not has_libgomp():
        assert in_fresh_process(kind, body) == "own True"
    else:
        assert in_fresh_process(kind, body) == f"{kind.replace('condition', 'own')} True"


def test_sleeping_threads_wake_up(kind: str) -> None:
    body = """
        import time
        from gnomon.runtime.execution import threads
        threads.set_num_threads(3)
        good = used = 0
        for _ in range(20):
            time.sleep(0.002)
            job = Job(6, doze=2000)
            job.run()
            good += job.complete()
            used = max(used, job.used())
        print(good, used > 1)
    """
    assert in_fresh_process(kind, body) == "20 True"


def test_fork(kind: str) -> None:
    body = """
        import os, threading
        from gnomon.runtime.execution import threads
        threads.set_num_threads(3)
        background = [threading.Thread(target=Job(6).run, args=(5000,)) for _ in range(2)]
        for thread in background: thread.start()
        codes = []
        for _ in range(5):
            Job(6, doze=500).run()
            child = os.fork()
            if child == 0:
                alone = Job(6)
                alone.run(10)
                good = alone.complete(10) and alone.used() == 1 and threads.num_threads() == 1
                threads.set_num_threads(2)
                used = 0
                for _ in range(20):  # on a busy machine the other may be late
                    more = Job(6, doze=2000)
                    more.run()
                    good = good and more.complete()
                    used = max(used, more.used())
                os._exit(0 if good and used == 2 else 1)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        after = Job(6, doze=2000)
        after.run()
        for thread in background: thread.join()
        print(codes, after.complete(), threads.num_threads())
    """
    assert in_fresh_process(kind, body) == "[0, 0, 0, 0, 0] True 3"


def test_fork_before_the_first_job() -> None:
    body = """
        import os
        from gnomon.runtime.execution import threads
        child = os.fork()
        if child == 0:
            os._exit(threads.num_threads())
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), threads.num_threads())
    """
    assert in_fresh_process("own", body, GNOMON_NUM_THREADS="3") == "1 3"


def _count(n: int) -> bool:
    job = Job(n)
    job.run()
    return job.complete()


def test_multiprocessing_fork() -> None:
    Job(8).run()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_count, range(8)) == [True] * 8


def test_exit_with_a_thread_at_work(kind: str) -> None:
    body = """
        import threading
        job = Job(4, doze=1000)
        job.run()
        threading.Thread(target=job.run, args=(10**6,), daemon=True).start()
        print("bye")
    """
    assert in_fresh_process(kind, body) == "bye"


def test_environment_is_honoured_and_left_alone() -> None:
    body = """
        import os
        from gnomon.runtime.execution import threads
        print(threads.num_threads(), os.environ.get("OMP_WAIT_POLICY"))
    """
    assert in_fresh_process("libgomp", body, OMP_NUM_THREADS="3") == "3 None"
    given = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "ACTIVE"}
    assert in_fresh_process("libgomp", body, **given) == "2 ACTIVE"
