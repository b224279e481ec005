"""The council: answers, reviews, corrections, synthesis. No platform, no database."""

from council.criteria import Criterion, EvaluationCriteria

__all__ = ["Criterion", "EvaluationCriteria"]
