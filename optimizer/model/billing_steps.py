"""Which of two billing steps never makes a use dearer."""

import math

from optimizer.model.option import Option

SAME = 1e-9


def billed_no_coarser(one: Option, other: Option, *, jobs: bool) -> bool:
    """Whether every use is paid for no longer on `one` than on `other`, both rented by use.

    Steps up to an hour count for jobs only. Else a step must divide the other one, and steps of the clock are never
    finer than steps from the start of the use.
    """
    if not _counts(one, jobs=jobs):
        return True
    if not _counts(other, jobs=jobs) or (one.billed_by_clock and not other.billed_by_clock):
        return False
    ratio = (other.billing_step_hours or 0.0) / (one.billing_step_hours or math.inf)
    return ratio >= 1 - SAME and abs(ratio - round(ratio)) <= SAME * ratio


def _counts(option: Option, *, jobs: bool) -> bool:
    return option.long_step or (jobs and option.billing_step_hours is not None)
