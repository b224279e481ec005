"""Whether a member's corrections spoil more than they put right.

With Acc the share of first answers that were right, ECR that of the wrong ones put right and EIR that
of the right ones spoilt, corrections change the share of right answers by (1-Acc)·ECR - Acc·EIR
(after arXiv 2604.22273). Of n judged ones, that is (fixed - spoilt) / n.
"""

from council.brief import CorrectionRecord
from council.worth.intervals import Interval, net_change

ENOUGH_JUDGED = 30


def net_effect(record: CorrectionRecord) -> Interval:
    """Return by how much corrections move the share of right answers, with 95 % confidence."""
    return net_change(record.fixed, record.spoilt, record.judged)


def spoils(record: CorrectionRecord) -> bool:
    """Return whether a member's corrections certainly do more harm than good."""
    return record.judged >= ENOUGH_JUDGED and net_effect(record).high < 0
