"""Text in the encodings in which people's programs save it."""

import codecs

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # its mark begins with UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decoded(content: bytes) -> str:
    """Return text in UTF-8 or, by its byte order mark, in UTF-16 or UTF-32, without the mark.

    PowerShell's `>` and editors on Windows write a mark. Without one, text in another encoding can't be
    told from any other bytes: `UnicodeDecodeError` is raised.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding)
    return content.decode("utf-8")
