"""`council doctor` as a process."""

import json
import os

import pytest

from tests.bot.doctor.scene import KEY, OWN_KEY, Scene
from tests.discord_server import Permission
from tests.launcher import start
from tests.model_server import Turn
from tests.test_team_chat import QUICK


class TestCommand:
    """`council doctor` as a process."""

    async def run(self, scene: Scene, *words: str) -> tuple[int, str, str]:
        """Run it to its end; return its exit code and what it wrote."""
        process = await start("doctor", *words, cwd=scene.folder, env=self.environment(scene))
        out, err = await process.communicate()
        return process.returncode or 0, out.decode(), err.decode()

    def environment(self, scene: Scene) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
        return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **kept, **scene.env}

    async def test_it_exits_with_0_while_council_run_serves(self, scene: Scene) -> None:
        """Its ports are in use, and its commands are registered: both as they should be."""
        serving = await start("run", cwd=scene.folder, env=self.environment(scene), code=QUICK)
        try:
            await scene.slack.connected()
            code, out, err = await self.run(scene)
        finally:
            serving.terminate()
            await serving.communicate()
        assert (code, err) == (0, ""), out
        assert "in use by `council run`" in out
        assert f"✓ Configuration       every setting can be used; read from {scene.folder}: " in out
        assert "registered, as this version has them" in out

    async def test_it_exits_with_1_and_the_fix(self, scene: Scene) -> None:
        """For people on a few lines."""
        scene.discord.world.application["bot_public"] = True
        code, out, err = await self.run(scene)
        assert (code, err) == (1, "")
        assert (
            "! Discord application\n"
            "    the application: Public Bot is switched on: strangers can add the bot to their servers and "
            "spend your credit.\n"
            "    Fix: discord.com/developers/applications > your application > Bot > switch off Public Bot "
            "(if Discord objects: Installation > Install Link > None first).\n"
        ) in out
        assert out.endswith("\n1 warning. Fix it, then run `council doctor` again.\n")

    async def test_json_has_the_same_content(self, scene: Scene) -> None:
        """For programs, on standard output alone."""
        scene.slack.revoke_token()
        code, out, err = await self.run(scene, "--json")
        assert (code, err) == (1, "")
        said = json.loads(out)
        assert said["ok"] is False
        states = {check["check"]: check["state"] for check in said["checks"]}
        assert states["Slack token"] == "error"
        assert states["Slack scopes"] == states["Slack channels"] == "skipped"
        [finding] = [each for check in said["checks"] for each in check["findings"]]
        assert finding["where"] == "SLACK_BOT_TOKEN"
        assert finding.keys() == {"weight", "where", "what", "fix"}

    async def test_an_unusable_configuration_is_said_in_both_forms(self, scene: Scene) -> None:
        """With every problem at once."""
        scene.env |= {"COUNCIL_MEMBRS": "a", "COUNCIL_STATUS_PORT": "high"}
        code, out, _ = await self.run(scene, "--json")
        assert code == 1
        [check] = json.loads(out)["checks"]
        assert [each["where"] for each in check["findings"]] == ["COUNCIL_MEMBRS", "COUNCIL_STATUS_PORT"]
        code, out, _ = await self.run(scene)
        assert code == 1
        assert "Did you mean COUNCIL_MEMBERS?" in out
        assert "?." not in out
        assert out.endswith("\n2 errors. Fix them, then run `council doctor` again.\n")

    async def test_an_empty_folder_is_not_set_up(self, scene: Scene) -> None:
        """It names the folder, for whoever is in the wrong one, and a name that is almost right."""
        folder = scene.folder / "elsewhere"
        folder.mkdir()
        given = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "SLAK_BOT_TOKEN": "xoxb-1"}
        process = await start("doctor", cwd=folder, env=given)
        out, err = await process.communicate()
        assert (process.returncode, err) == (1, b"")
        assert out.decode() == (
            "\u2717 Configuration\n"
            f"    {folder}: nothing is set up yet.\n"
            "    Fix: Run `council init`.\n"
            "    SLAK_BOT_TOKEN in the environment: nothing reads it.\n"
            "    Fix: Call it SLACK_BOT_TOKEN, if that is meant.\n"
            "\n"
            "1 error and 1 warning. Fix them, then run `council doctor` again.\n"
        )
        assert [*folder.iterdir()] == []

    @pytest.mark.parametrize("form", [(), ("--json",), ("--live",)])
    async def test_no_secret_is_shown(self, scene: Scene, form: tuple[str, ...]) -> None:
        """Whoever refuses a token may repeat it, and a channel may be called like one."""
        secrets = [value for name, value in scene.env.items() if name.endswith(("TOKEN", "KEY"))]
        scene.own_server(url=f"{scene.models.url}/v1".replace("//", "//me:pa55w0rd@"))
        scene.refused["/v1/models"] = 401
        scene.models.always("*", Turn(status=400, body={"error": {"message": f"bad {KEY}"}}))
        scene.discord.overwrite(scene.general, scene.discord.bot, deny=Permission.EMBED_LINKS)
        scene.general.name = scene.env["SLACK_BOT_TOKEN"]
        code, out, err = await self.run(scene, *form)
        assert code == 1
        assert "[hidden]" in out
        for secret in (*secrets, OWN_KEY, "pa55w0rd"):
            assert secret not in out + err
