"""Ballots become one ranking that says how far they agree."""

from collections.abc import Mapping, Sequence
from itertools import cycle, islice, permutations

from hypothesis import given
from hypothesis import strategies as st

from council.document.results import AggregateRanking, Rank
from council.reviews.ranking import aggregate, disagreements
from tests.pairs import rows

A, B, C, D, E = (f"Response {letter}" for letter in "ABCDE")
FOUR = {A: "ann", B: "bob", C: "cyd", D: "dee"}
TWO = {A: "ann", B: "bob"}


def standing(ranking: AggregateRanking) -> list[tuple[str, float | None, int, int]]:
    """Return letter, mean position, votes and wins of each place."""
    return [(place.label[-1], place.mean_position, place.votes, place.wins) for place in ranking.places]


def test_ranks_by_mean_position_without_a_vote_for_oneself() -> None:
    """With recusal, each answer's place is the mean over the ballots of the others; a vote for oneself is dropped."""
    ranking = aggregate({"ann": [B, C, D], "bob": [A, C, D], "cyd": [B, A, D], "dee": [B, A, C]}, FOUR)
    assert standing(ranking) == [
        ("B", 1.0, 3, 3),
        ("A", 5 / 3, 3, 2),
        ("C", 7 / 3, 3, 1),
        ("D", 3.0, 3, 0),
    ]
    assert [place.model for place in ranking.places] == ["bob", "ann", "cyd", "dee"]
    assert (ranking.ballots, ranking.uncounted) == (4, [])
    assert (ranking.agreement, ranking.agreement_word) == (1.0, "strong")
    with_own = aggregate({"ann": [A, C, B], "bob": [B, C, A], "dee": [D, A, B]}, FOUR)
    without = aggregate({"ann": [C, B], "bob": [C, A], "dee": [A, B]}, FOUR)
    assert with_own == without
    assert standing(with_own)[0] == ("C", 1.0, 2, 2)


def test_two_answers_count_whole() -> None:
    """A ballot without one's own would say nothing; two members who each prefer their own are a tie."""
    ranking = aggregate({"ann": [A, B], "bob": [A, B]}, TWO)
    assert standing(ranking) == [("A", 1.0, 2, 1), ("B", 2.0, 2, 0)]
    assert ranking.agreement == 1.0
    ranking = aggregate({"ann": [A, B], "bob": [B, A]}, TWO)
    assert standing(ranking) == [("A", 1.5, 2, 0), ("B", 1.5, 2, 0)]
    assert [ranking.rank(name) for name in ("ann", "bob")] == [
        Rank(1, shared=True, mean_position=1.5)
    ] * 2
    assert (ranking.agreement, ranking.agreement_word) == (-1.0, "split")


def test_unnamed_answers_come_last_also_without_any_ballot() -> None:
    """Ballots not read, or with one label left, are uncounted and named; an answer on no counted ballot has no mean."""
    ranking = aggregate({"dee": [], "ann": [B, C], "bob": [B, A], "cyd": [A]}, FOUR)
    assert ranking.uncounted == ["dee", "bob", "cyd"]
    assert ranking.ballots == 1
    ranking = aggregate({"ann": [D, C]}, FOUR)
    assert standing(ranking) == [
        ("D", 1.0, 1, 1),
        ("C", 2.0, 1, 0),
        ("A", None, 0, 0),
        ("B", None, 0, 0),
    ]
    assert (ranking.agreement, ranking.agreement_word) == (None, None)
    ranking = aggregate({"ann": [], "bob": []}, FOUR)
    assert [place.label for place in ranking.places] == [A, B, C, D]
    assert (ranking.ballots, ranking.agreement) == (0, None)


def test_pairwise_wins_of_more_than_half_break_ties() -> None:
    """Of answers with equal means, the one with more of them comes first."""
    labels = {A: "ann", B: "bob", C: "cyd"}
    ranking = aggregate({"v": [A, B, C], "w": [C, A, B], "x": [C, A, B]}, labels)
    assert standing(ranking) == [("C", 5 / 3, 3, 2), ("A", 5 / 3, 3, 1), ("B", 8 / 3, 3, 0)]
    ranking = aggregate({"x": [A, B], "y": [B, A]}, {A: "ann", B: "bob", C: "cyd"})
    assert [place.wins for place in ranking.places] == [0, 0, 0]


@rows(
    ("ballots", "agreement", "word"),
    [
        ([[A, B, C, D], [A, B, C, D]], 1.0, "strong"),
        ([[A, B, C, D], [D, C, B, A]], -1.0, "split"),
        ([[A, B, C, D], [A, B, D, C]], 2 / 3, "strong"),  # one of six pairs turned
        ([[A, B, C, D, E], [B, A, C, E, D]], 0.6, "strong"),  # two of ten
        ([[A, B, C, D, E], [C, B, A, E, D]], 0.2, "mixed"),  # four of ten
        ([[A, B, C], [C, A, B]], -1 / 3, "split"),  # two of three
        ([[A, B, C, D], [B, A, C, D], [A, B, D, C]], 5 / 9, "mixed"),  # 2/3, 2/3, 1/3
        ([[A, B, C], [B, C, D]], 1.0, "strong"),  # over the two they share
        ([[A, B, C], [C, D, E]], None, None),
        ([[A, B], [C, D], [B, A]], -1.0, "split"),  # one pair of ballots that can be compared
        ([[A, B, C]], None, None),
    ],
)
def test_agreement(ballots: Sequence[Sequence[str]], agreement: float | None, word: str | None) -> None:
    """Agreement is the mean Kendall tau over ballots that share two labels or more."""
    labels = {label: label for label in (A, B, C, D, E)}
    ranking = aggregate({f"voter {at}": ballot for at, ballot in enumerate(ballots)}, labels)
    assert ranking.agreement == agreement
    assert ranking.agreement_word == word


BALLOTS = st.dictionaries(
    st.sampled_from([*FOUR.values(), "eve", "fay"]),
    st.sampled_from([[*order] for length in range(5) for order in permutations(FOUR, length)]),
)


@given(BALLOTS, st.integers(0, 719))
def test_the_order_of_reviewers_does_not_matter(ballots: Mapping[str, list[str]], which: int) -> None:
    """The ranking is the same in whatever order the ballots come in."""
    shuffled = dict(next(islice(cycle(permutations(ballots.items())), which, None)))
    one, other = aggregate(ballots, FOUR), aggregate(shuffled, FOUR)
    assert one.places == other.places
    assert one.agreement == other.agreement
    assert set(one.uncounted) == set(other.uncounted)


def test_a_shared_rank_takes_the_places_below_it() -> None:
    """With three members no two ballots can be compared; after two seconds comes the fourth."""
    three = {A: "ann", B: "bob", C: "cyd"}
    ranking = aggregate({"ann": [B, C], "bob": [C, A], "cyd": [A, B]}, three)
    assert [place.mean_position for place in ranking.places] == [1.5, 1.5, 1.5]
    assert [ranking.rank(name) for name in three.values()] == [
        Rank(1, shared=True, mean_position=1.5)
    ] * 3
    assert (ranking.agreement, ranking.agreement_word) == (None, None)
    ranking = aggregate({"x": [A, B, C, D], "y": [A, C, B, D]}, {**FOUR, E: "eve"})
    assert [ranking.rank(name) for name in (*FOUR.values(), "eve", "nobody")] == [
        Rank(1, shared=False, mean_position=1.0),
        Rank(2, shared=True, mean_position=2.5),
        Rank(2, shared=True, mean_position=2.5),
        Rank(4, shared=False, mean_position=4.0),
        None,
        None,
    ]


def test_rankings_of_earlier_versions_are_read() -> None:
    """Their *too few shared votes* means no agreement."""
    stored: dict[str, object] = {
        "places": [],
        "agreement": None,
        "agreement_word": "too few shared votes",
        "ballots": 1,
    }
    assert AggregateRanking.model_validate(stored).agreement_word is None


@given(BALLOTS)
def test_ranking_is_whole(ballots: Mapping[str, list[str]]) -> None:
    """Every answer has one place, every reviewer is counted or named."""
    ranking = aggregate(ballots, FOUR)
    assert sorted(place.label for place in ranking.places) == list(FOUR)
    assert ranking.ballots + len(ranking.uncounted) == len(ballots)
    means = [place.mean_position for place in ranking.places if place.mean_position is not None]
    assert means == sorted(means)
    assert ranking.agreement is None or -1 <= ranking.agreement <= 1


@given(st.permutations(list(FOUR)), st.integers(1, 6))
def test_unanimous_ballots_are_the_ranking(order: list[str], voters: int) -> None:
    """If all ballots are the same, the ranking is, too."""
    ranking = aggregate({f"voter {number}": order for number in range(voters)}, FOUR)
    assert [place.label for place in ranking.places] == order
    assert [place.wins for place in ranking.places] == [3, 2, 1, 0]


def test_disagreements_name_who_placed_what_where() -> None:
    """An answer two or more places apart gets a line, and so does first against last; neighbouring places don't."""
    ballots = {"ann": [B, C, D], "bob": [A, C, D], "cyd": [D, A, B], "dee": [B, A, C]}
    assert disagreements(ballots, FOUR) == [
        "Response B (bob) is placed 1 of 3 by ann, 1 of 3 by dee, 3 of 3 by cyd",
        "Response D (dee) is placed 1 of 3 by cyd, 3 of 3 by ann, 3 of 3 by bob",
    ]
    five = {label: label[-1].lower() for label in (A, B, C, D, E)}
    assert disagreements({"v": [A, B, C, D, E], "w": [A, C, D, B, E]}, five) == [
        "Response B (b) is placed 2 of 5 by v, 4 of 5 by w"
    ]
    three = {A: "ann", B: "bob", C: "cyd"}
    assert disagreements({"ann": [B, C], "bob": [C, A], "cyd": [B, A]}, three) == [
        "Response C (cyd) is placed 1 of 2 by bob, 2 of 2 by ann"
    ]
    ballots = {"v": [A, B, C, D], "w": [A, C, B, D], "x": [A, B, C, D]}
    assert disagreements(ballots, FOUR) == []
    assert disagreements({"ann": [B, C, D], "dee": [], "cyd": [C, D]}, FOUR) == []
    assert disagreements({}, FOUR) == []
