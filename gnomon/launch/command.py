"""`gnomon launch`: the processes of a distributed program, started through an MPI that is there.

It takes the arguments of MXNet's launcher. What it adds to a plain `mpiexec -n 4 python train.py`:
the mpiexec of the MPI that this Python's mpi4py finds, what Open MPI needs as root or with more
processes than cores, a rank before each line of output, and no shared memory left behind by
processes that were killed.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from gnomon.base import GnomonError
from gnomon.launch import rank
from gnomon.launch.links import Links
from gnomon.launch.rank import LAST_WORDS, put

LAUNCHERS = ("mpi", "ssh", "local", "slurm")
#: names of what MPI libraries share between the processes of a machine
SEGMENTS = (
    "/dev/shm/mpich*", "/dev/shm/MPICH*", "/dev/shm/ucx_shm*", "/dev/shm/vader_segment*",
    "/dev/shm/sm_segment*", "/dev/shm/psm2_shm*", "/dev/shm/fi_shm*", "/tmp/ompi.*", "/tmp/prte.*",
)  # fmt: skip
ENDING_SECONDS = 5.0  # for the launcher to end a job that failed, before it is asked to
ENDED_SECONDS = 10.0  # for the launcher to end after its last rank, before the job is given up
ASKED_SECONDS = 5.0  # for the launcher to end when it is asked to, before it is killed
OUTPUT_SECONDS = 5.0  # for the last lines of output to be taken
LAST_SECONDS = 20.0  # for this process to end after the launcher, whatever holds it
ANSWER_SECONDS = 60.0  # for a program to say what it is
RANKS_PER_CORE = 64  # more than that on one machine are taken for a mistake
PASSED_ON = ("GNOMON_", "MXNET_", "DMLC_", "OMP_", "PYTHON")


def options(parser: argparse.ArgumentParser) -> None:
    """The arguments of `gnomon launch`."""
    parser.add_argument("-n", "--num-workers", type=int, required=True, help="how many workers")
    parser.add_argument(
        "-s", "--num-servers", type=int, default=0,
        help="ranks that only keep the weights of dist_async; by default workers do that too",
    )  # fmt: skip
    parser.add_argument("-H", "--hostfile", help="a file with a host in each line")
    parser.add_argument(
        "--launcher", choices=LAUNCHERS, default="mpi",
        help="mpi: mpiexec; ssh: the same, which goes to hosts by ssh; local: mpiexec on this "
        "machine alone; slurm: srun; default: mpi",
    )  # fmt: skip
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE",
        help="an environment variable of the processes; may be repeated",
    )  # fmt: skip
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the program with its arguments")


def main(given: argparse.Namespace) -> int:
    """Start the program and wait for its end; gives its exit code.

    Raises:
        GnomonError: wrong arguments, or no launcher to be found.
    """
    if given.num_workers < 1 or given.num_servers < 0:
        raise GnomonError(
            "launch: expected at least one worker (-n) and no negative number of servers (-s), "
            f"got {given.num_workers} and {given.num_servers}"
        )
    if not given.command:
        raise GnomonError("launch: expected a program to run, as `gnomon launch -n 4 python x.py`")
    if given.hostfile is None and given.launcher != "slurm":
        _check_for_one_machine(given)
    environment = _environment(given)
    far = given.hostfile is not None or given.launcher == "slurm"
    links = Links(given.num_workers + given.num_servers, far)
    environment |= links.environment()
    command = _command(given, environment)
    before = set(_segments())
    process = subprocess.Popen(
        command,
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output = _Output(process)
    links.watch(output.say)
    try:
        code = _waited(process, command[0], output, links)
        if code:
            _hint_at_another_python(given.command[0])
        return code
    finally:
        faulthandler.dump_traceback_later(LAST_SECONDS, exit=True)
        _end_group(process)
        output.end()
        _remove(set(_segments()) - before)


def _check_for_one_machine(given: argparse.Namespace) -> None:
    """GnomonError where this machine cannot run the job: MPI launchers find out late, or badly."""
    most = RANKS_PER_CORE * (os.cpu_count() or 1)
    if given.num_workers + given.num_servers > most:
        raise GnomonError(
            f"launch: expected at most {most} processes on this machine ({RANKS_PER_CORE} a core; "
            f"more need a hostfile), got -n {given.num_workers} -s {given.num_servers}"
        )
    if shutil.which(given.command[0]) is None:
        raise GnomonError(f"launch: there is no program {given.command[0]!r}")


def _hint_at_another_python(program: str) -> None:
    """Say so where the program is a Python of another environment, which has no gnomon."""
    found = shutil.which(program)
    if found is None or not Path(found).name.startswith("python"):
        return
    if Path(found).absolute().parent == Path(sys.executable).absolute().parent:
        return
    seek = "import importlib.util, sys; sys.exit(importlib.util.find_spec('gnomon') is None)"
    # from a folder without a gnomon, which `-c` would find
    if _answer(found, "-c", seek, cwd="/").returncode == 1:
        print(
            f"gnomon: launch: {program!r} is {found}, which has no gnomon; the one that runs this "
            f"launcher is {sys.executable}",
            file=sys.stderr,
        )


class _Output:
    """Passes on what a job says; of several messages about its failure, the first alone."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.told = float("inf")  # when the job said that it ends
        streams = ((process.stdout, 1), (process.stderr, 2))
        self._threads = [
            threading.Thread(target=self._pass_on, args=pair, name="gnomon launch", daemon=True)
            for pair in streams
        ]
        for thread in self._threads:
            thread.start()

    def _pass_on(self, source: IO[bytes], target: int) -> None:
        for line in iter(source.readline, b""):
            last = line.rstrip().endswith(LAST_WORDS.encode())
            if not (last and self.told < time.monotonic()):
                with contextlib.suppress(OSError):
                    put(target, line)
            if last:
                self.told = min(self.told, time.monotonic())

    def say(self, text: str) -> None:
        """Say that the job ends, unless it did itself."""
        if self.told == float("inf"):
            self.told = time.monotonic()
            print(f"gnomon: {text}{LAST_WORDS}", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Wait for the last lines, if anything still reads them."""
        until = time.monotonic() + OUTPUT_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))


def _environment(given: argparse.Namespace) -> dict[str, str]:
    environment = dict(os.environ)
    environment |= {
        "GNOMON_DIST_SERVERS": str(given.num_servers),
        "DMLC_NUM_WORKER": str(given.num_workers),
        "DMLC_NUM_SERVER": str(given.num_servers),
        "DMLC_ROLE": "worker",
    }
    for each in given.env:
        name, equals, value = each.partition("=")
        environment[name] = value if equals else os.environ.get(name, "")
    return environment


def _command(given: argparse.Namespace, environment: dict[str, str]) -> list[str]:
    """The launcher's command line; sets what it needs in the environment."""
    count = str(given.num_workers + given.num_servers)
    program = [sys.executable, "-P", str(Path(rank.__file__)), *given.command]
    if given.launcher == "slurm":
        srun = shutil.which("srun")
        if srun is None:
            raise GnomonError("launch: there is no srun: is this a machine of a Slurm cluster?")
        return [srun, "-n", count, "--kill-on-bad-exit=1", *program]
    mpiexec = find_mpiexec()
    hosts = given.hostfile if given.launcher != "local" else None
    if hosts is not None and not Path(hosts).is_file():
        raise GnomonError(f"launch: there is no hostfile {hosts!r}")
    if _is_open_mpi(mpiexec):
        environment |= {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        where = ["--hostfile", hosts] if hosts else []
        passed = [
            part
            for name in sorted(environment)
            if name.startswith(PASSED_ON)
            for part in ("-x", name)
        ]
        mapped = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
        return [mpiexec, "-n", count, *mapped, *where, *passed, *program]
    where = ["-f", hosts] if hosts else []
    return [mpiexec, "-n", count, *where, *program]


def find_mpiexec() -> str:
    """The mpiexec beside this Python, where wheels put it, or else the one in the path.

    Raises:
        GnomonError: there is none.
    """
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise GnomonError(
            "launch: there is no mpiexec, neither beside this Python nor in the path: "
            "pip install 'gnomon[dist]' brings one"
        )
    return found


def _answer(*command: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """What a program says that should end at once; GnomonError where it does not."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=ANSWER_SECONDS, **more
        )
    except subprocess.TimeoutExpired:
        text = f"launch: `{shlex.join(command)}` gave no answer for {ANSWER_SECONDS:g} s"
        raise GnomonError(text) from None


def _is_open_mpi(mpiexec: str) -> bool:
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = _answer(mpiexec, "--version", env=os.environ | as_root)
    return "Open MPI" in done.stdout or "OpenRTE" in done.stdout or "PRRTE" in done.stdout


def _waited(process: subprocess.Popen[bytes], command: str, output: _Output, links: Links) -> int:
    """The exit code; signals that ask for an end are passed on meanwhile.

    A launcher that does not end after its job said that it does, or after its last rank, is asked
    to, then killed: MPICH's waits for ever for hosts that it cannot reach, and for processes of its
    own that died.
    """

    def pass_on(number: int, _: object) -> None:
        process.send_signal(number)

    before = {s: signal.signal(s, pass_on) for s in (signal.SIGINT, signal.SIGTERM)}
    asked = False
    try:
        while (code := process.poll()) is None:
            now = time.monotonic()
            if now > links.ended + ENDED_SECONDS:
                output.say(f"all ranks have ended, and {command} has not")
            late = now - min(links.ended + ENDED_SECONDS, output.told + ENDING_SECONDS)
            if late > ASKED_SECONDS:
                process.kill()
            elif late > 0 and not asked:
                asked = True
                process.terminate()  # srun gives its nodes back, which it cannot when it is killed
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if code:
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        output.say(f"{command} {how}")
    return code if code >= 0 else 128 - code


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End what the launcher left behind of its own group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _segments() -> Iterator[Path]:
    """Shared memory of this user that MPI libraries made."""
    for pattern in SEGMENTS:
        folder, _, name = pattern.rpartition("/")
        yield from filter(_is_ours, Path(folder).glob(name))


def _is_ours(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.getuid()
    except OSError:
        return False


def _remove(paths: set[Path]) -> None:
    """Remove what no process uses any more."""
    deadline = time.monotonic() + 2
    while paths and time.monotonic() < deadline:
        used = _in_use()
        for path in [p for p in paths if not any(str(p) in name for name in used)]:
            with contextlib.suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            paths.discard(path)
        if paths:
            time.sleep(0.2)


def _in_use() -> set[str]:
    """Files that processes of this user have mapped or open."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for line in (folder / "maps").read_text().splitlines():
                found.add(line.partition("/")[2])
            found.update(str(link.readlink()) for link in (folder / "fd").iterdir())
    return found | {f"/{name}" for name in found if name and not name.startswith("/")}
