"""Worker: what imperative training steps hold: `memory_imperative.py PACKAGE NET SIZE`, as JSON."""

from __future__ import annotations

import json
import sys

PACKAGE, NET, SIZE = sys.argv[1:]
sys.argv[1:] = [PACKAGE, "imperative"]  # what the module of the steps asks for

import imperative_module  # noqa: E402  # it reads its arguments as it is imported
from memory_status import held, held_later, seconds, status  # noqa: E402  # as above


def main() -> None:
    """Train, and print what is held."""
    before, held_before = status("VmRSS"), held()
    step, wait, _ = imperative_module.setup(NET, int(SIZE))

    def waited() -> None:
        step()
        wait()

    for _ in range(20):
        waited()
    peak = status("VmHWM")
    later = held_later() - held_before
    print(json.dumps({"later": later, "seconds": seconds(waited),
                      "peak": peak, "more": peak - before}))  # fmt: skip


if __name__ == "__main__":
    main()
