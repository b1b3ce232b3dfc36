"""Stores that join processes, under a real MPI: values, training, and how they are started."""

import os
import re
import subprocess
import sys

import pytest
from distributed import job, values

from gnomon.launch import command as launch


@pytest.mark.parametrize("ranks", [1, 3, pytest.param(4, marks=pytest.mark.long)])
def test_values(ranks):
    output = job.here(ranks, "values.py").stdout
    assert output.count("done ") == ranks * len(values.CHECKS)


def test_values_with_servers_of_their_own():
    chosen = ("sums_of_lists_and_single_keys", *(n for n in names() if n.startswith("async")))
    output = job.here(2, "values.py", *chosen, servers=1).stdout
    assert output.count("done ") == 2 * 3


def test_asynchronous_values_over_tcp():
    chosen = [name for name in names() if name.startswith("async")]
    assert job.here(3, "values.py", *chosen, network=True).stdout.count("done ") == 3 * 2


def names():
    return [check.__name__ for check in values.CHECKS]


#: of buckets: few, where keys of several layers travel together, and many, begun amidst backward
SIZES = [4 << 20, 20_000]


@pytest.mark.parametrize(
    ("kind", "ranks", "nbytes"), [("dist_sync", 2, SIZES[1]), ("horovod", 3, SIZES[0])]
)
def test_training_is_that_of_one_process(kind, ranks, nbytes):
    done = job.here(ranks, "training.py", kind, 6, dist_bucket_bytes=nbytes)
    assert done.stdout.count("agreed") == ranks


@pytest.mark.parametrize("contexts", [1, 2])
def test_a_batch_is_normalized_over_ranks(contexts):
    assert job.here(2, "normal.py", contexts).stdout.count("alike") == 4


@pytest.mark.long
@pytest.mark.parametrize("nbytes", SIZES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["dist_sync", "dist_device_sync", "horovod"])
@pytest.mark.timeout(600)
def test_training_for_long(kind, ranks, nbytes):
    done = job.here(ranks, "training.py", kind, 100, limit=500, dist_bucket_bytes=nbytes)
    assert done.stdout.count("agreed") == ranks


def accuracies(ranks, epochs, *more):
    example = job.ROOT / "examples" / "distributed_mnist.py"
    output = job.launch(ranks, example, "--epochs", epochs, *more).stdout
    return re.findall(r"epoch (\d): accuracy ([0-9.]+)", output)


def test_an_interrupted_job_goes_on_to_the_same_result(tmp_path):
    checkpoints = ("--folder", tmp_path, "--every", 20)
    first = accuracies(2, 1, *checkpoints)
    assert (tmp_path / "last").read_text() == '{"step": 20}'
    assert first + accuracies(2, 2, *checkpoints, "--resume")[1:] == accuracies(1, 2)


CREATE = "import gnomon as mx; kv = mx.kv.create('dist_sync'); print(kv.rank, kv.num_workers)"


def alone(program, **more):
    """A program in a process that no launcher started."""
    known = ("PMI", "OMPI", "PMIX", "SLURM")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(known)}
    environment |= {"PYTHONPATH": str(job.ROOT), **more}
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment,
        timeout=60, check=False,
    )  # fmt: skip


def test_without_a_launcher_there_is_one_rank_and_a_line_that_says_so():
    done = alone(CREATE)
    assert (done.returncode, done.stdout) == (0, "0 1\n"), done.stderr
    assert re.search(r"started without a launcher: this process is the only worker", done.stderr)


def test_an_mpiexec_of_another_mpi_is_told():
    before = set(launch._segments())
    done = alone("import os; print(os.getpid(), flush=True)\n" + CREATE, OMPI_COMM_WORLD_SIZE="3")
    assert done.returncode == 1
    left = set(launch._segments()) - before
    assert not {p for p in left if p.name.startswith(f"mpich_shm_{int(done.stdout):x}_")}
    assert "started 3 processes (OMPI_COMM_WORLD_SIZE), and the MPI library" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-n", "99999999", "true"), r"at most \d+ processes on this machine .* got -n 99999999"),
        (("-n", "0", "true"), "at least one worker"),
        (("-n", "2"), "expected a program"),
        (("-n", "2", "no-such-program"), "there is no program 'no-such-program'"),
        (("-n", "2", "-H", "no-such-file", "true"), "there is no hostfile 'no-such-file'"),
        (("-n", "2", "--launcher", "ssh", "-H", "no-file", "true"), "there is no hostfile"),
    ],
)
def test_wrong_arguments_of_the_launcher_are_told_in_one_line(arguments, words):
    done = subprocess.run(
        [sys.executable, "-m", "gnomon", "launch", *arguments], capture_output=True, text=True,
        timeout=60, check=False, cwd=job.ROOT,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert re.search(f"^gnomon: launch: .*{words}", done.stderr)


def test_the_launcher_loads_no_arrays():
    """It starts as soon as it can, also on a machine that has much to do."""
    done = alone("import sys, gnomon.cli, gnomon.launch.command; print('numpy' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


def test_a_program_that_ends_with_an_error_is_named_with_its_rank():
    done = job.launch(2, "-c", "raise SystemExit(5)", check=False)
    assert done.returncode == 5
    assert re.fullmatch(
        r"gnomon: rank \d \(.*\) ended with exit code 5; the job ends\n", done.stderr
    )


def test_a_python_without_gnomon_is_told(tmp_path):
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    other.chmod(0o755)
    program = tmp_path / "train.py"
    program.write_text("import gnomon\n")
    done = subprocess.run(
        [sys.executable, "-m", "gnomon", "launch", "-n", "1", other, program], cwd=job.ROOT,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"gnomon: launch: '{other}' is {other}, which has no gnomon; the one")


@pytest.mark.parametrize("missing", ["mpi4py", "mpi4py.MPI"])
def test_without_mpi_the_error_says_what_to_install(missing):
    hidden = f"import sys; sys.modules[{missing!r}] = None\n"
    done = alone(hidden + CREATE)
    assert done.returncode == 1
    assert "pip install 'gnomon[dist]'" in done.stderr.splitlines()[-1]


def test_settings_that_differ_are_told():
    program = "import os; os.environ['GNOMON_DIST_BUCKET_BYTES'] = str(1000 + os.getpid())\n"
    done = job.launch(2, "-c", program + CREATE, check=False)
    assert done.returncode
    assert re.search(r"ranks disagree on setting dist_bucket_bytes: rank 1 \(host", done.stderr)
