"""Whether this thread records what it computes, trains, or predicts: flags of each thread."""

from __future__ import annotations

import threading

from gnomon.native.words import native

_RECORDING, _TRAINING = "recording", "training"  # that native code does not take for constants


class Mode(threading.local):
    """The flags of one thread; all are off at first.

    `predicting` says that a block which is not compiled computes, off the record.
    """

    recording = False
    training = False
    predicting = False


mode = Mode()


@native
def is_recording() -> bool:
    """Whether this thread records."""
    return getattr(mode, _RECORDING) is True


@native
def is_training() -> bool:
    """Whether this thread trains."""
    return getattr(mode, _TRAINING) is True


class recording:
    """A scope that records, or not."""

    __slots__ = ("before", "flag")

    def __init__(self, flag: bool) -> None:
        self.flag = flag

    def __enter__(self) -> None:
        self.before, mode.recording = mode.recording, self.flag

    def __exit__(self, *exc: object) -> None:
        mode.recording = self.before
