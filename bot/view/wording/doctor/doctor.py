"""What `council doctor` says: what is wrong, in the words of the platforms' pages, and how to fix it."""

from typing import NamedTuple

from bot.view.wording.figures import count
from bot.view.wording.names import listing


class Advice(NamedTuple):
    """What is wrong, and how to fix it."""

    what: str
    fix: str


# ── the report ────────────────────────────────────────────────────────────────────────────────

ALL_WELL = "Everything is fine."
NOT_LIVE = "No model was asked anything; --live asks each member for one word."


def summary(errors: int, warnings: int) -> str:
    """Say how much is wrong."""
    counted = [
        count(number, what) for number, what in ((errors, "error"), (warnings, "warning")) if number
    ]
    them = "it" if errors + warnings == 1 else "them"
    return f"{listing(counted)}. Fix {them}, then run `council doctor` again."


def needs(check: str) -> str:
    """Say why a check was skipped."""
    return f"skipped: first fix what is wrong under {check}"


def too_slow(seconds: float) -> Advice:
    """Say that a check ran out of time."""
    return Advice(
        f"there was no result within {seconds:g} s",
        "Check the network, then run `council doctor` again",
    )


CHECK_FAILED = Advice(
    "the check itself failed",
    "Report what was logged; the checks that don't depend on it still ran",
)

# ── settings and files ────────────────────────────────────────────────────────────────────────

CONFIGURED = "every setting can be used"
NO_PLATFORM = "neither Discord nor Slack is configured; `council ask` and `council chat` work"
NO_FILES = "no file contains a secret"
PRIVATE = "only you can read them"
NO_FOLDER_YET = "created at the first start"
NOT_LISTENING = "off: COUNCIL_STATUS_PORT isn't set"
IN_USE = "in use by `council run`, which is running"


def readable_by_others(path: str) -> Advice:
    """Say that a file with secrets isn't private."""
    return Advice(
        "other users of this machine can read it, and it contains secrets",
        f"Run: chmod 600 {path}",
    )


def folder_open(path: str) -> Advice:
    """Say that the data folder isn't private."""
    return Advice(
        "other users of this machine can open it, and it contains questions and answers",
        f"Run: chmod 700 {path}",
    )


def file_open(path: str) -> Advice:
    """Say that a file of the data folder isn't private."""
    return Advice(
        "other users of this machine can read it, and it contains questions and answers",
        f"Run: chmod 600 {path}",
    )


def not_a_folder(path: str) -> Advice:
    """Say that there is a file where the folder should be."""
    return Advice(
        f"{path} is a file, not a folder",
        "Move the file away, or set COUNCIL_DATA_DIR to another folder",
    )


def not_writable(reason: str) -> Advice:
    """Say that nothing can be written into the folder."""
    return Advice(
        f"nothing can be written there ({reason})",
        "Make it writable for the user that runs the council, or set COUNCIL_DATA_DIR to another folder",
    )


def little_room(megabytes: int, wanted: int) -> Advice:
    """Say that the disk is almost full."""
    return Advice(
        f"only {megabytes:,} MB are free; at least {wanted:,} MB should be",
        "Free some space: on a full disk, runs wait and new questions are refused",
    )


def room(gigabytes: float) -> str:
    """Say how much room there is."""
    return f"{gigabytes:,.0f} GB free" if gigabytes >= 1 else f"{gigabytes * 1000:,.0f} MB free"


NO_DATABASE_YET = "created at the first start"
MIGRATED_AT_START = "from an earlier version; the next start brings it up to date"
DAMAGED = Advice(
    "it is damaged",
    "Stop every process that has it open, then start: the database is set aside, what is readable in "
    "its journal is carried over, and the index is rebuilt",
)
NEWER = Advice(
    "it was written by a newer version of this program",
    "Update this program, or restore an earlier backup",
)
SUPERUSER = Advice(
    "its role is a superuser: whoever gets at the address can read and change everything on that server",
    "Make an ordinary role that owns the council's database, as deploy/postgres-role.sh does, and name "
    "it in the address",
)
ORDINARY_ROLE = "no superuser"


def processes_differ(differing: int, running: int) -> Advice:
    """Say that other processes have another file."""
    return Advice(
        f"{differing} of {running} running {'process has' if running == 1 else 'processes have'} "
        f"another council.toml than this one",
        "Give every machine the same file; what needs a restart is in docs/configuration.md",
    )


def processes_agree(running: int) -> str:
    """Say how many processes run with this file."""
    if not running:
        return "none is running"
    return f"{running} {'has' if running == 1 else 'have'} the same council.toml"


SOUND = "sound, and its journal can be read"


def unreadable_rows(runs: int, steps: int) -> Advice:
    """Say that rows of the journal can't be read."""
    found = [count(number, what) for number, what in ((runs, "run"), (steps, "model call")) if number]
    return Advice(
        f"its journal has {listing(found)} that can't be read",
        "No action is needed: these runs are left out, and these calls are made again. If the "
        "number keeps growing, check the disk",
    )


def cannot_be_opened(reason: str) -> Advice:
    """Say why the database can't be used."""
    return Advice(reason, "docs/troubleshooting.md says what to do, under What the errors mean")


INDEX_DIFFERS = "Run: council index rebuild"


def index_differs(missing: int, stale: int, orphaned: int) -> Advice:
    """Say how the index differs from the documents."""
    parts = (
        (missing, "{} not in it"),
        (stale, "{} changed since being indexed"),
        (orphaned, "{} in it without a document"),
    )
    return Advice(
        "the index doesn't match the conversations: "
        + listing(text.format(number) for number, text in parts if number),
        INDEX_DIFFERS,
    )


def unreadable_document(reason: str) -> Advice:
    """Say why a conversation's file can't be read."""
    return Advice(
        f"it can't be read: {reason}",
        "Restore it from a backup, or move it away, then run: council index rebuild",
    )


def conversations(number: int) -> str:
    """Count the conversations."""
    return count(number, "conversation")


# ── traces ────────────────────────────────────────────────────────────────────────────────────

NO_ANSWER = "no answer"
TRACES_TAKEN = "the collector takes them"
NO_OTEL = Advice(
    "the extra otel isn't installed, so no traces are sent",
    "Run: uv sync --frozen --inexact --extra otel; or unset it",
)
HEADERS_REFUSED = Advice(
    "the collector refuses it",
    "Set it to the headers that the collector asks for: name=value,name=value",
)


def no_collector(reason: str) -> Advice:
    """Say that no collector takes traces there."""
    return Advice(
        f"no collector takes traces there ({reason})",
        "Set the address of its receiver for OTLP over HTTP, usually on port 4318",
    )


# ── the clock ─────────────────────────────────────────────────────────────────────────────────

NO_TIME_SEEN = "skipped: no server said what time it is"


def clock_wrong(seconds: float) -> Advice:
    """Say by how much the clock is wrong."""
    off = f"{abs(seconds):.0f} s {'ahead' if seconds > 0 else 'behind'}"
    return Advice(
        f"this machine's clock is {off}; Slack's signatures fail when it is 5 minutes off",
        "Let the system set it: timedatectl set-ntp true",
    )


def clock_right(seconds: float) -> str:
    """Say that the clock is right."""
    return f"accurate to {max(1, round(abs(seconds)))} s"
