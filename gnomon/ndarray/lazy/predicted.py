"""Predicted: what a scope computes off the record, noted and computed together.

Blocks that are not compiled predict operator by operator, each of which copies its weights into the
layout that a library reads them in. The operators of one call are noted as those of a record are
(`notes.py`), and computed when it ends: where the same came often, by a program of all of them,
which keeps such copies as long as the weights stay as they are. No array waits behind the call.

The record is another one than that of what the thread records, which goes on around it.
"""

from __future__ import annotations

from gnomon.ground.record import put
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.lazy.forwarded import FEWEST
from gnomon.ndarray.lazy.fusion_group import here
from gnomon.ndarray.lazy.notes import end_predictions


class Predicted:
    """A scope whose operators are noted, and computed when it ends.

    `is_brief` says then whether they are too few to be noted again, which is seen where all of them
    stand in a record that was there before. Views of arrays are views here, too, through which
    others may write: what is viewed is computed at once. In train mode, and where a finaliser comes
    between others' operators, nothing is noted.
    """

    __slots__ = ("_notes", "is_brief")

    def __enter__(self) -> Predicted:
        record = here.own.predicted
        self.is_brief = False
        self._notes = not mode.training
        if record is not None and (record.working or record.noting):
            self._notes = False
        if self._notes and record is not None:
            record.enter()
            put(record, "scopes", 1)  # 0 as soon as something of it is computed
        mode.predicting = self._notes
        return self

    def __exit__(self, *exc: object) -> None:
        mode.predicting = False
        record = here.own.predicted
        if self._notes and record is not None:
            self.is_brief = record.scopes == 1 and 0 < record.mark.count < FEWEST
            record.read()
            if self.is_brief:
                end_predictions()
