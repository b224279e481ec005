"""What a judge reports of answers that it compared without names, as documents store it."""

from council.document.results import Record


class DifferingPoint(Record):
    """An important point on which answers differ; `checkable` if a source or calculation settles it."""

    text: str
    checkable: bool = False


class Comparison(Record):
    """One comparison: whether the answers recommend the same, where they differ, which is better.

    `same` is `None` where the judge can't tell. `better` is a label, `None` for a tie. `steering` are
    the labels of answers that speak of labels, of other answers or of the judging.
    """

    same: bool | None
    points: tuple[DifferingPoint, ...] = ()
    better: str | None = None
    steering: tuple[str, ...] = ()

    @property
    def agree(self) -> bool:
        """Whether the answers recommend the same and differ in nothing important."""
        return self.same is True and not self.points and not self.steering
