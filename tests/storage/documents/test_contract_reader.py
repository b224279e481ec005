"""Documents of every kind are read by a program that knows the storage contract alone."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from council.profile import Profile
from storage.documents.conversations import ConversationStore
from tests.council.scripted import FOUR, ScriptedCouncil, failure, profile
from tests.council.worth.test_depth import AGREED, DIFFERENT, auto, council
from tests.storage.documents.contract_reader import ContractBroken, read
from tests.storage.examples import CONTRACT_EXAMPLE, CONTRACT_ID, new_id

NOW = datetime(2026, 1, 20, 10, 30, tzinfo=UTC)
ALONE = {f"stage1.1:{name}": failure() for name in FOUR[1:]}

KINDS: dict[str, tuple[ScriptedCouncil, Profile]] = {
    "full": (council(), profile()),
    "quick": (council(), profile(depth="quick")),
    "auto, skipped": (council(AGREED), auto()),
    "auto, different": (council(DIFFERENT), auto()),
    "auto, no verdict": (council(failure()), auto()),
    "auto, audited": (council(AGREED), auto(depth_audit=1.0)),
    "auto, one answer": (council(**ALONE), auto()),
    "quick, no chairman": (council(stage3=failure()), profile(depth="quick")),
    "two rounds": (council(), profile(max_rounds=2)),
    "by points": (council(), profile(critique_mode="extracted")),
    "without corrections": (council(), profile(corrects=False)),
    "quick, with criteria": (council(), profile(depth="quick", criteria="Cost:3, Security:2!")),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_another_program_reads_every_kind_of_document(tmp_path: Path, kind: str) -> None:
    """It shows the question, the answers and the final answer, and knows nothing of depth."""
    scripted, seats = KINDS[kind]
    message = (await scripted.run(seats)).message
    store = await ConversationStore.open(tmp_path)
    conversation = new_id()
    await store.add_exchange(
        conversation, "Should we shard?", message, title="Sharding", source=None, now=NOW
    )
    path = tmp_path / f"{conversation}.json"
    shown = read(path)
    assert shown[:2] == ["Sharding", "Should we shard?"]
    assert shown[-1] == f"{message.stage3.model}: {message.stage3.response}"
    stored = json.loads(path.read_bytes())["messages"][1]
    if not message.stage2:
        assert stored["stage2"] == []
        assert not {"stage2_5", "label_to_model", "aggregate_ranking"} & stored.keys()


def test_the_reader_is_the_contracts(tmp_path: Path) -> None:
    """It reads the contract's own example, and refuses what breaks a rule of it."""
    path = tmp_path / f"{CONTRACT_ID}.json"
    path.write_bytes(CONTRACT_EXAMPLE)
    assert len(read(path)) == 2 + 3 + 3 + 3 + 1
    broken = json.loads(CONTRACT_EXAMPLE)
    broken["messages"][1]["stage2_5"][0]["original_response"] = "Lyon."
    path.write_bytes(json.dumps(broken).encode())
    with pytest.raises(ContractBroken, match="response match"):
        read(path)
