"""Every sentence people read, one module per surface; an editor can read them as a whole."""


def to_install(extra: str) -> str:
    """Return the command that adds an extra to a checkout; an image is built with its extras."""
    return f"make install EXTRAS={extra}"
