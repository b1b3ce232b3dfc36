"""A step of training or prediction with small networks: gnomon beside its peers, turn by turn.

    python benchmarks/train.py --peer mxnet=ORACLE/bin/python --peer torch=TORCH/bin/python

A training step is forward, backward and SGD with momentum on a batch that lies in memory; rows with
`predict` are the forward pass alone. Every contender starts from the same parameters; their losses
after a few steps are compared before anything is timed: MXNet's differ on LeNet from run to run, by
a race of its threaded engine with oneDNN. The table gives each median and, in brackets, the median
ratio to gnomon's step of the same round, and at the end what gnomon achieves of the rate of a large
matrix product. A peer whose interpreter is missing is left out, and that is said.

`gnomon without ...` are runs with that switched off: passes (fusion among them), or native programs
(each operator is pushed to the engine). `--only gnomon torch` leaves out all others.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import measure
from peers import nets
from peers.protocol import Peer, PeerError, start

WORKERS = Path(__file__).parent / "peers"
CONTENDERS = {
    "gnomon": ("gnomon", "train_module.py", ("gnomon",)),
    "mxnet": ("mxnet", "train_module.py", ("mxnet",)),
    "torch": ("torch", "train_torch.py", ("eager",)),
    "torch.compile": ("torch", "train_torch.py", ("compile",)),
    "jax": ("jax", "train_jax.py", ()),
    "gnomon without passes": ("gnomon", "train_module.py", ("gnomon", "passes")),
    "gnomon without programs": ("gnomon", "train_module.py", ("gnomon", "programs")),
}
TOLERANCE = 1e-3
PRODUCT = 1024  # rows and columns of the matrices whose product says what the machine can do
ROWS = {
    **{f"{net} {size}": (net, size, True) for net in ("mlp", "lenet") for size in (32, 128)},
    "resnet20 32": ("resnet20", 32, True),
    "lstm 20": ("lstm", 20, True),
    **{
        f"predict {net} {size}": (net, size, False)
        for net in ("mlp", "lenet", "resnet20", "lstm")
        for size in (1, 32)
    },
}


def disagreement(facts: dict[str, dict[str, float]]) -> str:
    """Whose loss differs from the middle one by more than rounding; empty where all agree."""
    losses = {name: fact["loss"] for name, fact in facts.items()}
    middle = statistics.median_low(losses.values()) if losses else 0.0
    near = TOLERANCE * max(1.0, abs(middle))
    odd = [f"{n} {loss:.4f}" for n, loss in losses.items() if not abs(loss - middle) <= near]
    return f"losses that are not {middle:.4f}: {', '.join(odd)}" if odd else ""


def product_rate(peer: Peer) -> float:
    """GFLOP/s of a large matrix product."""
    peer.ask("setup", net="sgemm", size=PRODUCT, train=False)
    peer.ask("run", steps=3)
    seconds = min(peer.ask("run", steps=2)["seconds"] / 2 for _ in range(5))
    return 2 * PRODUCT**3 / seconds / 1e9


def achieved(title: str, seconds: dict[str, list[float]], rate: float) -> str:
    """The last cell of a row: gnomon's GFLOP/s, and the part that is of a matrix product's."""
    if "gnomon" not in seconds or not rate:
        return ""
    found = nets.flops(*ROWS[title]) / statistics.median(seconds["gnomon"]) / 1e9
    return f" {found:.3g} GFLOP/s ({found / rate:.0%}) |"


def begun(only: Sequence[str] | None, pythons: dict[str, str]) -> list[Peer]:
    """The contenders that are wanted and start."""
    wanted = {
        name: (pythons.get(environment, sys.executable), WORKERS / script, arguments)
        for name, (environment, script, arguments) in CONTENDERS.items()
        if name in (only or CONTENDERS)
    }
    return start(wanted)


def main() -> None:
    """Time and print."""
    options = measure.arguments(__doc__.splitlines()[0]).parse_args()
    peers = begun(options.only, measure.interpreters(options))
    names = [peer.name for peer in peers]
    print(*(peer.about["about"] for peer in peers), f"{options.threads} threads", sep="; ")
    rate = 0.0
    for peer in peers:
        if peer.name == "gnomon":
            rate = product_rate(peer)
            print(f"a product of matrices of {PRODUCT} rows: {rate:.0f} GFLOP/s")
    print(measure.header("a step", [*names, *(["achieved"] if rate else [])]))
    for title in measure.chosen(list(ROWS), options.rows):
        net, size, train = ROWS[title]
        able, facts = measure.prepared(peers, net=net, size=size, train=train)
        if problem := disagreement(facts):
            print(f"{title}: {problem}", file=sys.stderr)
        seconds = measure.interleaved(able, options.rounds, options.block) if able else {}
        print(measure.row(title, names, seconds) + achieved(title, seconds, rate), flush=True)
    for peer in peers:
        peer.close()


if __name__ == "__main__":
    try:
        main()
    except PeerError as error:
        sys.exit(f"a contender failed: {error}")
