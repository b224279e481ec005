"""What people read about files and links, word for word."""

from bot.view.wording.inputs import files_read
from council.document.conversation import FileRecord, LinkRecord
from tests.pairs import rows


def file(name: str, kind: str = "text", **more: object) -> FileRecord:
    """Return what is known of a file."""
    return FileRecord.model_validate({"name": name, "kind": kind, "characters": 9, **more})


@rows(
    ("files", "said"),
    [
        ([file("notes.txt")], ["Read notes.txt."]),
        ([file("plan.pdf", "pdf", pages=12)], ["Read plan.pdf, 12 pages."]),
        (
            [
                file("plan.pdf", "pdf", pages=12, omitted="pages 3\u20135 hold only pictures", seen_by=["gpt-5"]),
                file("shot.png", "picture", width=1200, height=800, seen_by=["gpt-5", "grok-4"]),
            ],
            [
                "Read plan.pdf, 12 pages (pages 3\u20135 hold only pictures, seen by gpt-5); shot.png, a picture, 1200 \u00d7 800 (seen by gpt-5 and grok-4)."
            ],
        ),
        (
            [
                file("shot.png", "picture", characters=None, width=1200, height=800, seen_by=[],
                     omitted="no member of this council sees pictures"),
                file("old.pdf", "pdf", characters=None, omitted="encrypted"),
            ],
            [
                "Not read: shot.png (no member of this council sees pictures), old.pdf (encrypted).",
            ],
        ),
        ([file("scan.pdf", "pdf", characters=None, pages=2, seen_by=[],
               omitted="pages 1\u20132 hold only pictures")],
         ["Not read: scan.pdf (pages 1\u20132 hold only pictures)."]),
    ],
)  # fmt: skip
def test_files_are_named_with_what_was_read(files: list[FileRecord], said: list[str]) -> None:
    """Who saw pictures, and why something wasn't read."""
    assert [*files_read(files)] == said


def test_links_are_named_as_people_name_them() -> None:
    """Without their scheme; those of a follow-up's conversation are read again."""
    links = [
        LinkRecord(url="https://example.org/post", title="Post", words=2300),
        LinkRecord(url="https://example.org/", omitted="needs a login"),
    ]
    assert [*files_read([], links, ["plan.pdf"])] == [
        "Read example.org/post, 2,300 words.",
        "Not read: example.org (needs a login).",
        "Read again from earlier: plan.pdf.",
    ]
