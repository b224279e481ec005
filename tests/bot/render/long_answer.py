"""Answers of any length with everything that trips chat bots."""

from itertools import count, islice

UNIT = """\
## Part {0}: what it costs

Some **bold text that goes on**, `code {0}`, a [link](https://example.org/a_b?c={0}) and https://example.com/x_{0}_y.
@everyone and @here, <@U123> and <@123456789012345678>, <!channel>, <!subteam^S12|team>, <#C1>, <https://e.vil|text>.

| Option {0} | Costs | EndReason |
| --- | ---: | --- |
| cron | 10 | known \\| boring |
| Temporal | 200 | retries `a < b` |

1. First thing {0}
   - nested *emphasis*
     - deeper: \u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3068\u6f22\u5b57
   - another, with code:

     ```sh
     flock -n /tmp/nightly.lock ./nightly --part {0}
     ```
2. Second thing \U0001f469\u200d\U0001f4bb\U0001f1e9\U0001f1ea

> \u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd quoted {0}

```python
def part_{0}(items: list[int]) -> int:
    return sum(item for item in items if item < {0})  # <@U123> <!here>
```

```rust
fn part_{0}<T: Clone>(items: &[T]) -> Vec<T> {{ items.to_vec() }}
```

"""
LONG_FENCE = "```go\n" + "".join(f'fmt.Println("line {n}")\n' for n in range(300)) + "```\n\n"
LONG_LINE = "\u6f22\u5b57" * 1_500 + "\n\n" + "word " * 1_000 + "\n\n"


def answer(length: int) -> str:
    """Return an answer of at least `length` characters."""
    if length < len(UNIT):
        return UNIT[:length]
    units = (UNIT.format(number) for number in count(1))
    text = LONG_FENCE + LONG_LINE if length > len(LONG_FENCE + LONG_LINE) + len(UNIT) else ""
    return text + "".join(islice(units, (length - len(text)) // len(UNIT) + 1))
