"""What passes through layers on its way to a call."""

from collections.abc import Callable

from council.calls import wrap


def test_layers_are_passed_in_the_order_they_are_written() -> None:
    """From the first to the innermost."""
    passed: list[str] = []

    def layer(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
        def wrapped(inner: Callable[[], None]) -> Callable[[], None]:
            def call() -> None:
                passed.append(name)
                inner()

            return call

        return wrapped

    wrap(lambda: passed.append("call"), layer("first"), layer("second"))()
    assert passed == ["first", "second", "call"]
