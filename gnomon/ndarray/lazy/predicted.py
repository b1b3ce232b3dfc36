"""Predicted: what a function computes off the record, noted and computed together.

Blocks that are not compiled predict operator by operator, each of which copies its weights into the
layout that a library reads them in. The operators of one call are noted as those of a record are
(`notes.py`), and computed when it ends: where the same came often, by a program of all of them,
which keeps such copies as long as the weights stay as they are. No array waits behind the call.

The record is another one than that of what the thread records, which goes on around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.lazy.fusion_group import here
from gnomon.ndarray.lazy.notes import end_predictions
from gnomon.record import put

FEWEST = 8  # operators, of which a program takes less time than they do by themselves


def predicted(function: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, bool]:
    """What `function(*args)` gives, and whether its operators are too few to be noted again.

    That is seen where all of them stand in a record that was there before. Views of arrays are
    views here, too, through which others may write: what is viewed is computed at once.
    """
    record = here.own.predicted
    if mode.training or (record is not None and (record.working or record.noting)):
        return function(*args), False
    if record is not None:
        record.enter()
        put(record, "scopes", 1)  # 0 as soon as something of it is computed
    mode.predicting = True
    is_brief = False
    try:
        found = function(*args)
    finally:
        mode.predicting = False
        record = here.own.predicted
        if record is not None:
            is_brief = record.scopes == 1 and 0 < record.mark.count < FEWEST
            record.read()
            if is_brief:
                end_predictions()
    return found, is_brief
