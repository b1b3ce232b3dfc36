"""Schedules refuse settings that say nothing."""

import pytest

from gnomon import lr_scheduler as lr


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: lr.FactorScheduler(0), "step"),
        (lambda: lr.FactorScheduler(1, 2), "factor"),
        (lambda: lr.MultiFactorScheduler([]), "step"),
        (lambda: lr.MultiFactorScheduler([3, 2]), "step"),
        (lambda: lr.MultiFactorScheduler([3], 2), "factor"),
        (lambda: lr.PolyScheduler(0), "max_update"),
        (lambda: lr.CosineScheduler(1.5), "max_update"),
        (lambda: lr.LRScheduler(warmup_steps=-1), "warmup_steps"),
        (lambda: lr.LRScheduler(warmup_begin_lr=1.0), "warmup_begin_lr"),
        (lambda: lr.LRScheduler(warmup_mode="slow"), "warmup_mode"),
        (lambda: lr.LRScheduler().get_warmup_lr(3), "num_update"),
    ],
)
def test_refused(make, argument):
    with pytest.raises(ValueError, match=f"argument '{argument}'"):
        make()


def test_a_warm_up_as_long_as_the_schedule():
    schedule = lr.PolyScheduler(5, warmup_steps=5, base_lr=1.0)
    assert [schedule(4), schedule(5)] == [0.8, 0.0]
