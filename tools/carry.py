"""A step of building the wheel: compile the kernels of typical work, and put them into the package.

They serve processors of this one's level, with this Python and this llvmlite; others compile what
they need, for an entry's name is a digest of all that its code depends on. Where the kernels cannot
be compiled the wheel is built without them, as `GNOMON_CARRY=0` in the environment wants it: then
it is a wheel for every machine and Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIMIT = 600.0  # seconds
WARM = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from gnomon.cli import main
sys.exit(main(["cache", "warm"]))
"""


def is_wanted() -> bool:
    return os.environ.get("GNOMON_CARRY") != "0"


class CarryHook(BuildHookInterface):
    """Called by hatchling before and after it writes a wheel."""

    def dependencies(self) -> list[str]:
        """What building takes beside hatchling: what running takes."""
        return self.metadata.core.dependencies if is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or not is_wanted():
            return
        self.cache = tempfile.TemporaryDirectory(prefix="gnomon-carry-")
        kernels = Path(self.cache.name, "kernels")
        foreign = {k: v for k, v in os.environ.items() if not k.startswith(("GNOMON_", "MXNET_"))}
        try:
            subprocess.run(
                [sys.executable, "-c", WARM, self.root],
                env=foreign | {"GNOMON_CACHE_DIR": self.cache.name, "PYTHONDONTWRITEBYTECODE": "1"},
                check=True,
                timeout=LIMIT,
            )
        except (OSError, subprocess.SubprocessError) as error:
            self.app.display_warning(f"the wheel carries no kernels: {error}")
            return
        build_data["force_include"][str(kernels)] = "gnomon/carried"
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "cache"):
            self.cache.cleanup()
