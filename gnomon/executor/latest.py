"""The backward pass that was pushed last, which an update may still join.

It is held back until the engine is next asked for anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gnomon.executor.train_step import Pushed


class Latest:
    """The backward pass that was pushed last, if an update may still join it."""

    pushed: Pushed | None = None


latest = Latest()
