"""Jobs on several hosts, which are network namespaces: values, training, links that are cut."""

import re
import time

import pytest
from distributed import hosts, values

pytestmark = pytest.mark.long


def output(job, limit=120):
    out, err = job.communicate(timeout=limit)
    assert job.returncode == 0, f"{out[-2000:]}\n{err[-4000:]}"
    return out


def test_all_checks_of_values_between_hosts(tmp_path):
    with hosts.made(3, tmp_path) as them:
        found = output(them.start("tests/distributed/values.py"))
    assert found.count("done ") == 3 * len(values.CHECKS)


def test_servers_of_their_own_on_another_host(tmp_path):
    chosen = ("asynchronous_pushes_all_count", "asynchronous_rows_bits_and_states")
    with hosts.made(3, tmp_path) as them:
        found = output(them.start("tests/distributed/values.py", *chosen, servers=1))
    assert found.count("done ") == 2 * 2


def test_training_on_a_slow_network(tmp_path):
    with hosts.made(2, tmp_path, rate="200mbit") as them:
        found = output(them.start("tests/distributed/training.py", "dist_sync", 6))
        sent = [them.sent(host) for host in range(2)]
    assert found.count("agreed") == 2
    assert min(sent) > 1e6, sent


@pytest.mark.parametrize("host", [0, 1])
@pytest.mark.parametrize("after", [0, 0.1, 0.8, 1.5, 4])
def test_a_cut_link_ends_the_job(tmp_path, host, after):
    """At once after the ranks' processes began, while MPI starts, or in the midst of work."""
    with hosts.made(3, tmp_path) as them:
        job = them.start("tests/distributed/faults.py", "kill", 0, -1, dist_heartbeat_seconds=2)
        while len(them.processes("launch/rank")) < 3:
            time.sleep(0.05)
        time.sleep(after)
        them.cut(host)
        _, said = job.communicate(timeout=60)
        assert not them.left("faults.py")
    assert job.returncode != 0
    ways = r"gave no sign of life|ended with exit code 1|cannot be reached|did not connect"
    assert re.search(rf"rank \d.* ({ways}).*; the job ends\n", said)
