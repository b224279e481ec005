"""What is read of files, pictures and links, at most."""

MIB = 2**20

TEXT_BYTES = 200_000
DOCUMENT_BYTES = 20 * 1_000_000
PICTURE_BYTES = 10 * 1_000_000
MOST_PAGES = 200
MOST_CHARACTERS = 100_000
"""Of one document."""
MOST_PICTURES = 4
"""Of one question: files that are pictures."""
MOST_PAGE_PICTURES = 8
"""Of one question: pages without text that are drawn."""
MOST_PIXELS = 50_000_000
PICTURE_SIDE = 1_568
"""Pixels of a picture's longer side as it is sent, at most; models scale larger ones down by themselves
(https://docs.anthropic.com/en/docs/build-with-claude/vision)."""
PIXELS_PER_TOKEN = 750
"""Of a picture as it is sent (the same page); other models count no more."""
PICTURE_OUTPUT = 1_500_000
"""Bytes of a picture as it is sent; larger ones are compressed more."""

SECONDS = 10
MEMORY = 512 * MIB
OUTPUT = 24 * MIB
AT_ONCE = 2
"""Files that are read at the same time."""
