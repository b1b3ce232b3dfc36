"""Network namespaces as the hosts of a job, each with a name and shared memory of its own.

Root is needed, and `ip`, `tc`, `unshare` and MPICH's `mpiexec`. All hosts are on one bridge; the
rate of each one's link may be limited, its bytes are counted, and it can be cut.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

#: has ranks of MPICH talk by TCP, as between machines, wherever they are
TCP = {"UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp", "MPIR_CVAR_NOLOCAL": "1"}

#: hydra calls it as it would ssh: options, a host, and a command
ENTER = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
exec ip netns exec "$host" unshare --uts --mount --ipc --propagation private sh -c \
    "hostname $host; mount -t tmpfs tmpfs /dev/shm; exec $*"
"""


def run(*words: object) -> None:
    subprocess.run(list(map(str, words)), check=True, capture_output=True)


def command_of(process: str) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


class Hosts:
    """`count` hosts, by name; `made` makes and removes them."""

    def __init__(self, count: int, folder: Path) -> None:
        self.stem = f"g{os.getpid() % 100000}"
        self.names = [f"{self.stem}-{k}" for k in range(count)]
        self.hub = f"{self.stem}-hub"
        self._enter = folder / "enter"
        self._enter.write_text(ENTER)
        self._enter.chmod(self._enter.stat().st_mode | stat.S_IEXEC)

    def make(self, rate: str | None) -> None:
        for name in (self.hub, *self.names):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", self.hub, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", self.hub, "link", "set", "bridge", "up")
        run("ip", "-n", self.hub, "address", "add", "10.77.0.100/24", "dev", "bridge")
        for k, name in enumerate(self.names):
            port = f"{self.stem}p{k}"
            run("ip", "link", "add", port, "netns", self.hub, "type", "veth",
                "peer", "name", "eth0", "netns", name)  # fmt: skip
            run("ip", "-n", self.hub, "link", "set", port, "master", "bridge", "up")
            run("ip", "-n", name, "address", "add", f"10.77.0.{k + 1}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            if rate is not None:
                run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf",
                    "rate", rate, "burst", "256kb", "latency", "50ms")  # fmt: skip

    def left(self, word: str) -> list[int]:
        """Processes with a word in their command line that still run a while later."""
        end = time.monotonic() + 20
        while time.monotonic() < end and (found := self.processes(word)):
            time.sleep(0.2)
        return found

    def processes(self, word: str) -> list[int]:
        found = []
        for name in self.names:
            done = subprocess.run(
                ["ip", "netns", "pids", name], check=True, capture_output=True, text=True
            )
            found += [int(each) for each in done.stdout.split() if word in command_of(each)]
        return found

    def remove(self) -> None:
        for process in self.processes(""):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)  # as MPICH's proxies, which wait for mpiexec
        for name in (*self.names, self.hub):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def cut(self, host: int) -> None:
        """Take the link of a host down."""
        run("ip", "-n", self.names[host], "link", "set", "eth0", "down")

    def sent(self, host: int) -> int:
        """The bytes that a host has sent."""
        counter = "/sys/class/net/eth0/statistics/tx_bytes"
        command = ["ip", "netns", "exec", self.names[host], "cat", counter]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def start(
        self,
        *command: object,
        servers: int = 0,
        output: int | None = subprocess.PIPE,
        **settings: object,
    ) -> subprocess.Popen[str]:
        """A job with one rank on each host; it runs in the namespace of the hub."""
        table = self._enter.parent / "hosts"
        table.write_text("".join(f"10.77.0.{k + 1} {name}\n" for k, name in enumerate(self.names)))
        environment = {**os.environ, **TCP, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
        environment |= {
            "HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": str(self._enter),
            "HYDRA_IFACE": "bridge",
        }  # fmt: skip
        environment |= {f"GNOMON_{k.upper()}": str(v) for k, v in settings.items()}
        hostfile = self._enter.parent / "hostfile"
        hostfile.write_text("".join(f"{name}:1\n" for name in self.names))
        start = [
            "ip", "netns", "exec", self.hub, sys.executable, "-m", "gnomon", "launch",
            "-n", len(self.names) - servers, "-s", servers, "-H", hostfile, sys.executable,
        ]  # fmt: skip
        return subprocess.Popen(
            list(map(str, [*start, *command])), env=environment, cwd=ROOT, text=True,
            stdout=output, stderr=output,
        )  # fmt: skip


@contextlib.contextmanager
def made(count: int, folder: Path, rate: str | None = None) -> Iterator[Hosts]:
    """Hosts that are removed at the end."""
    hosts = Hosts(count, folder)
    try:
        hosts.make(rate)
        yield hosts
    finally:
        hosts.remove()


def main() -> int:
    """Run a program with one rank on each of so many hosts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, help="how many hosts")
    parser.add_argument("--rate", help="of each host's link, as `tc` knows it")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the program and its arguments")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, made(given.count, Path(folder), given.rate) as us:
        return us.start(*given.command, output=None).wait()


if __name__ == "__main__":
    sys.exit(main())
