"""Criteria: what is allowed, and the short form people type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from council import Criterion, EvaluationCriteria
from tests.pairs import rows


@rows(
    "text",
    [
        "Cost:3, Security:2!, Speed",
        " Cost : 3 ,Security!:2,  Speed ",
        "Cost:3.0; Security: 2 !; Speed;",
        "Cost\uff1a3\uff0cSecurity\uff1a2\uff01\u3001Speed",
    ],
)
def test_the_typed_form_is_read_as_people_type_it(text: str) -> None:
    """With spaces, semicolons and full-width signs."""
    assert EvaluationCriteria.model_validate(text) == EvaluationCriteria(
        criteria=(
            Criterion(name="Cost", weight=3),
            Criterion(name="Security", weight=2, must_have=True),
            Criterion(name="Speed"),
        )
    )


def test_a_bare_list_is_read_too() -> None:
    """As `council.toml` has it."""
    read = EvaluationCriteria.model_validate([{"name": "Cost", "description": "a year", "weight": 2}])
    assert read.criteria == (Criterion(name="Cost", description="a year", weight=2),)


@rows(
    ("text", "said"),
    [
        ("", "write 1 to 20 criteria"),
        ("Cost,,Speed", "\u201c\u201d isn't a criterion"),
        ("Cost:much", "\u201cCost:much\u201d isn't a criterion"),
        ("Cost:0", "more than 0 and at most 100"),
        ("Cost:101", "more than 0 and at most 100"),
        ("Cost, cost", "there is more than one criterion Cost"),
        ("7", "isn't only a number"),
        ("x" * 61, "1 to 60 characters"),
        ("a | b", "can't contain |"),
        (",".join(f"c{number}" for number in range(21)), "write 1 to 20 criteria"),
    ],
)
def test_a_mistake_is_reported(text: str, said: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValidationError) as caught:
        EvaluationCriteria.model_validate(text)
    assert said in str(caught.value)


NAMES = st.text("Aaz09 ", max_size=18).map(lambda inner: " ".join(f"Z{inner}b".split()))


@given(
    st.lists(
        st.builds(
            Criterion,
            name=NAMES,
            weight=st.integers(1, 100).map(lambda tenth: tenth / 10),
            must_have=st.booleans(),
        ),
        min_size=1,
        max_size=6,
        unique_by=lambda criterion: criterion.name.casefold(),
    )
)
def test_what_is_written_is_read_back(criteria: list[Criterion]) -> None:
    """`str` gives the typed form."""
    written = EvaluationCriteria(criteria=tuple(criteria))
    assert EvaluationCriteria.model_validate(str(written)) == written
