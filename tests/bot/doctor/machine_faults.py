"""Faults of the settings, the machine and the data folder."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

from tests.bot.doctor.scene import ID, NOWHERE, Planted, Scene, setting


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


def _orphan(scene: Scene) -> None:
    with closing(sqlite3.connect(scene.data / "council.db")) as database:
        columns = database.execute("PRAGMA table_info(conversations)").fetchall()
    needed = {
        name: kind for _, name, kind, is_needed, default, _ in columns if is_needed and default is None
    }
    values = ("1" if kind in ("INTEGER", "REAL") else f"'{ID}'" for kind in needed.values())
    scene.sql(f"INSERT INTO conversations ({', '.join(needed)}) VALUES ({', '.join(values)})")  # noqa: S608 - our own


def _untraceable(scene: Scene) -> None:
    scene.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = NOWHERE
    scene.patch.setattr("bot.checks.telemetry.can_trace", lambda: False)


def _no_collector(scene: Scene) -> None:
    scene.env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{scene.models.url}/v1/nothing"


def _refusing_collector(scene: Scene) -> None:
    scene.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = scene.models.url
    scene.env["OTEL_EXPORTER_OTLP_HEADERS"] = "api-key=0123456789"
    scene.refused["/v1/traces"] = 401


def _taken(name: str) -> Callable[[Scene], object]:
    return lambda scene: scene.env.update({name: str(scene.take_port())})


FAULTS = [
    Planted(
        "unknown setting",
        setting("COUNCIL_MEMBRS", "a/b"),
        "COUNCIL_MEMBRS",
        "no such setting",
        "Did you mean COUNCIL_MEMBERS",
    ),
    Planted(
        "nobody to ask",
        _without("COUNCIL_MEMBERS"),
        "COUNCIL_MEMBERS",
        "nobody to ask",
        "Set COUNCIL_MEMBERS=",
    ),
    Planted(
        "half of Slack",
        _without("SLACK_APP_TOKEN"),
        "SLACK_BOT_TOKEN",
        "half configured",
        "SLACK_APP_TOKEN",
    ),
    Planted(
        ".env for all",
        lambda s: s.write(".env", "COUNCIL_OWN_NAME=one\n", 0o644),
        ".env",
        "other users",
        "chmod 600 .env",
        "warning",
    ),
    Planted(
        "secret file for all",
        _secret_file,
        "slack-token",
        "other users",
        "chmod 600 slack-token",
        "warning",
    ),
    Planted(
        "status port taken",
        _taken("COUNCIL_STATUS_PORT"),
        "COUNCIL_STATUS_PORT",
        "nothing can listen",
        "Set another",
    ),
    Planted(
        "foreign status host",
        setting("COUNCIL_STATUS_HOST", "192.0.2.1"),
        "COUNCIL_STATUS_HOST",
        "isn't an address of this machine",
        "127.0.0.1",
    ),
    Planted(
        "traces without the extra",
        _untraceable,
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "the extra otel isn't installed",
        "uv sync --frozen --inexact --extra otel",
        "warning",
    ),
    Planted(
        "no collector",
        setting("OTEL_EXPORTER_OTLP_ENDPOINT", NOWHERE),
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "no collector takes traces there",
        "port 4318",
        "warning",
    ),
    Planted(
        "another server for a collector",
        _no_collector,
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "no collector takes traces there (404)",
        "OTLP over HTTP",
        "warning",
    ),
    Planted(
        "refusing collector",
        _refusing_collector,
        "OTEL_EXPORTER_OTLP_HEADERS",
        "the collector refuses it",
        "name=value",
        "warning",
    ),
    Planted("wrong clock", lambda s: setattr(s, "ahead", 200.0), "the clock", " s ahead", "timedatectl"),
    Planted(
        "a file for a folder",
        lambda s: (s.write("a-file", ""), setting("COUNCIL_DATA_DIR", "a-file")(s)),
        "COUNCIL_DATA_DIR (a-file)",
        "is a file",
        "another folder",
    ),
    Planted(
        "unwritable folder",
        setting("COUNCIL_DATA_DIR", "/sys/council"),
        "COUNCIL_DATA_DIR (/sys/council)",
        "nothing can be written",
        "Make it writable",
    ),
    Planted(
        "folder for all",
        lambda s: s.data.chmod(0o755),
        "COUNCIL_DATA_DIR (data)",
        "other users",
        "chmod 700 data",
        "warning",
    ),
    Planted(
        "database for all",
        lambda s: (s.data / "council.db").chmod(0o644),
        "data/council.db",
        "other users",
        "chmod 600 data/council.db",
        "warning",
    ),
    Planted(
        "full disk",
        _full_disk,
        "COUNCIL_DATA_DIR (data)",
        "only 120 MB are free",
        "Free some space",
        "warning",
    ),
    Planted("damaged database", _damaged, "data/council.db", "it is damaged", "set aside"),
    Planted(
        "newer database",
        lambda s: s.sql("INSERT INTO migrations VALUES (9999, 'later', 't')"),
        "data/council.db",
        "newer version",
        "Update this program",
    ),
    Planted(
        "broken run",
        _broken_run,
        "data/council.db",
        "1 run that can't be read",
        "No action is needed",
        "warning",
    ),
    Planted(
        "row without a document",
        _orphan,
        "data/council.db",
        "1 in it without a document",
        "council index rebuild",
        "warning",
    ),
    Planted(
        "broken document",
        lambda s: s.write(f"data/conversations/{ID}.json", "{"),
        f"{ID}.json",
        "can't be read",
        "Restore it",
        "warning",
    ),
]
