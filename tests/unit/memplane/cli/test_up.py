import json
import stat

from memplane.builtin import policies_folder
from memplane.cli.up import development_key, editable_policy
from memplane.policy.access import hash_api_key


def test_the_key_is_shown_once_and_only_its_hash_is_kept(tmp_path):
    key, digest = development_key(tmp_path, new_key=False)
    stored = tmp_path / "dev.json"
    assert key is not None
    assert json.loads(stored.read_text()) == {"admin_key_sha256": hash_api_key(key)}
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert development_key(tmp_path, new_key=False) == (None, digest)


def test_a_new_key_replaces_the_old_one(tmp_path):
    first, _ = development_key(tmp_path, new_key=False)
    second, digest = development_key(tmp_path, new_key=True)
    assert second not in (None, first)
    assert development_key(tmp_path, new_key=False) == (None, digest)


def test_the_policy_is_copied_once_and_then_belongs_to_the_user(tmp_path):
    folder = editable_policy(tmp_path)
    assert {path.name for path in folder.iterdir()} == {path.name for path in policies_folder("default").iterdir()}
    (folder / "write.yaml").write_text("write_policy:\n  threshold: 0.5\n")
    editable_policy(tmp_path)
    assert "0.5" in (folder / "write.yaml").read_text()
