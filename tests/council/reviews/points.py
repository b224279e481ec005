"""Points as a JSON ballot has them."""

from functools import partial

from council.document.results import ReviewPoint

against = partial(ReviewPoint, kind="objection", source="structured")
praise = partial(ReviewPoint, kind="strength", source="structured")
