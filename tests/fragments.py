"""Texts made of chosen fragments, for properties: they break things more often than random letters do."""

from collections.abc import Sequence

from hypothesis import strategies as st


def made_of(fragments: Sequence[str], most: int) -> st.SearchStrategy[str]:
    """Return texts of up to `most` fragments; one draw each, so that many examples are quick."""
    # Left alone, a draw is short.
    draws = st.binary(max_size=most) | st.binary(min_size=most // 2, max_size=most)

    @st.composite
    def texts(draw: st.DrawFn) -> str:
        return "".join(fragments[number % len(fragments)] for number in draw(draws))

    return texts()
