"""Faults of the settings, the machine and the data folder."""

import errno
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

from storage.errors import explain_sqlite
from storage.overrides import Overrides
from tests.bot.doctor.scene import ID, MEMBERS, Scene, setting


def _secret_file(scene: Scene) -> None:
    scene.write("slack-token", scene.env.pop("SLACK_BOT_TOKEN"), 0o644)
    scene.env["SLACK_BOT_TOKEN_FILE"] = "slack-token"  # noqa: S105 - the name of a file


def _without(*names: str) -> Callable[[Scene], object]:
    return lambda scene: [scene.env.pop(name) for name in names]


def _full_disk(scene: Scene) -> None:
    usage = SimpleNamespace(total=10**12, used=10**12, free=120_000_000)

    def disk_usage(_: Path) -> SimpleNamespace:
        return usage

    scene.patch.setattr(shutil, "disk_usage", disk_usage)


def _no_room(scene: Scene) -> None:
    def refused(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    scene.patch.setattr(tempfile, "TemporaryFile", refused)


def _damaged(scene: Scene) -> None:
    path = scene.data / "council.db"
    content = bytearray(path.read_bytes())
    content[100:4000] = b"\xff" * 3900
    path.write_bytes(content)


def _broken_run(scene: Scene) -> None:
    scene.sql(
        "INSERT INTO runs (id, entry_key, conversation_id, origin, brief, status, created_at) "
        "VALUES ('r', 'e', 'c', '{}', '{', 'running', 't')"
    )


def _failing_disk(scene: Scene) -> None:
    async def read(*_: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise explain_sqlite(scene.data / "council.db", error)

    scene.patch.setattr(Overrides, "everywhere", read)


def _orphan(scene: Scene) -> None:
    with closing(sqlite3.connect(scene.data / "council.db")) as database:
        columns = database.execute("PRAGMA table_info(conversations)").fetchall()
    needed = {
        name: kind for _, name, kind, is_needed, default, _ in columns if is_needed and default is None
    }
    values = ("1" if kind in ("INTEGER", "REAL") else f"'{ID}'" for kind in needed.values())
    scene.sql(f"INSERT INTO conversations ({', '.join(needed)}) VALUES ({', '.join(values)})")  # noqa: S608 - our own


def _taken(name: str) -> Callable[[Scene], object]:
    return lambda scene: scene.env.update({name: str(scene.take_port())})


def _without_provider(scene: Scene) -> None:
    away = ("OPENROUTER_", "COUNCIL_MEMBERS", "COUNCIL_CHAIRMAN")
    scene.env = {name: value for name, value in scene.env.items() if not name.startswith(away)}


def _with_a_file_alone(scene: Scene) -> None:
    _without_provider(scene)
    platforms = ("DISCORD_", "SLACK_")
    scene.env = {name: value for name, value in scene.env.items() if not name.startswith(platforms)}
    scene.write(".env", "# nothing yet")


PLANTS: dict[str, Callable[[Scene], object]] = {
    "unknown setting": setting("COUNCIL_MEMBRS", "a/b"),
    "nobody to ask": _without("COUNCIL_MEMBERS"),
    "half of Slack": _without("SLACK_APP_TOKEN"),
    ".env for all": lambda s: s.write(".env", "PAGER=less\n", 0o644),
    "secret file for all": _secret_file,
    "status port taken": _taken("COUNCIL_STATUS_PORT"),
    "foreign status host": setting("COUNCIL_STATUS_HOST", "192.0.2.1"),
    "wrong clock": lambda s: setattr(s, "ahead", 200.0),
    "a file for a folder": lambda s: (s.write("a-file", ""), setting("COUNCIL_DATA_DIR", "a-file")(s)),
    "unwritable folder": setting("COUNCIL_DATA_DIR", "/sys/council"),
    "folder for all": lambda s: s.data.chmod(0o755),
    "database for all": lambda s: (s.data / "council.db").chmod(0o644),
    "disk without any room": _no_room,
    "full disk": _full_disk,
    "damaged database": _damaged,
    "newer database": lambda s: s.sql("INSERT INTO migrations VALUES (9999, 'later', 't')"),
    "broken run": _broken_run,
    "setting on a failing disk": _failing_disk,
    "row without a document": _orphan,
    "broken document": lambda s: s.write(f"data/conversations/{ID}.json", "{"),
    "key of one letter": setting("OPENROUTER_API_KEY", "x"),
    "council of one": setting("COUNCIL_MEMBERS", MEMBERS[0]),
    "token under another name": setting("SLAK_BOT_TOKEN", "xoxb-1"),
    "token under another name in .env": lambda s: s.write(".env", "SLAK_APP_TOKEN=x\n"),
    "platforms without a provider": _without_provider,
    "neither platforms nor a provider": _with_a_file_alone,
}
