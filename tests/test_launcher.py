"""The processes that tests fork from one that has imported the program: as processes started otherwise."""

import subprocess
from pathlib import Path

from tests.launcher import start


async def test_a_process_has_its_own_folder_environment_and_streams(tmp_path: Path) -> None:
    """What is typed reaches it, what it writes comes back, and its code is told."""
    code = (
        "import os, sys\n"
        "print(os.getcwd(), sys.argv, sorted(os.environ), sys.stdin.read())\n"
        "print('wrong', file=sys.stderr)\n"
        "sys.exit(3)"
    )
    process = await start("ask", "why", cwd=tmp_path, env={"ONE": "1"}, stdin=subprocess.PIPE, code=code)
    out, err = await process.communicate("日本".encode())
    assert out.decode() == f"{tmp_path} ['council', 'ask', 'why'] ['ONE'] 日本\n"
    assert (err, process.returncode) == (b"wrong\n", 3)


async def test_a_process_ends_as_python_ends(tmp_path: Path) -> None:
    """After its threads, by what it registered, with a word on what it forgot."""
    code = (
        "import atexit, sys, threading\n"
        "async def forgotten(): pass\n"
        "atexit.register(print, 'registered')\n"
        "threading.Thread(target=lambda: (threading.main_thread().join(), print('thread'))).start()\n"
        "kept = [forgotten()]\n"
        "kept.append(kept)\n"
        "sys.exit(3)"
    )
    process = await start(cwd=tmp_path, env={}, code=code)
    out, err = await process.communicate()
    assert out == b"thread\nregistered\n"
    assert b"coroutine 'forgotten' was never awaited" in err
    assert process.returncode == 3
