"""Keys that a kubeconfig holds inline are readable by nobody else."""

import base64
import stat
from pathlib import Path

import pytest
import yaml

from controller.apiserver import ApiServer, ApiUnreachable
from controller.credentials import PrivateFiles, without_inline_data
from controller.workspace.trees import remove_tree

KEY = base64.b64encode(b"a key\n").decode()
DOCUMENT = {
    "current-context": "c",
    "clusters": [
        {"name": "c", "cluster": {"server": "https://h", "certificate-authority-data": KEY}}
    ],
    "users": [{"name": "u", "user": {"client-key-data": KEY, "client-certificate-data": KEY}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
}


def test_inline_data_becomes_files_of_ours() -> None:
    """Mode 0600 in a directory of mode 0700; the document that was read stays as it was."""
    files = PrivateFiles()
    found = without_inline_data(DOCUMENT, files)
    user = found["users"][0]["user"]
    assert set(user) == {"client-key", "client-certificate"}
    path = Path(user["client-key"])
    assert path.read_bytes() == b"a key\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "client-key-data" in DOCUMENT["users"][0]["user"]
    files.remove()
    assert not path.parent.exists()
    files.remove()


def test_files_that_a_host_cleared_away_are_written_again() -> None:
    """Each under a name of its own, whichever of them went."""
    files = PrivateFiles()
    files.write(b"first").unlink()
    second, first = files.write(b"second"), files.write(b"first")
    second.unlink()
    second = files.write(b"second")
    assert (first.read_bytes(), second.read_bytes()) == (b"first", b"second")
    remove_tree(first.parent)
    assert files.write(b"first").read_bytes() == b"first"
    files.remove()


def test_a_directory_of_somebody_else_in_its_place_is_not_used() -> None:
    """Neither what it holds is believed, nor is anything written there."""
    files = PrivateFiles()
    first = files.write(b"first")
    first.parent.chmod(0o777)
    first.write_bytes(b"of somebody else")
    again = files.write(b"first")
    assert again.parent != first.parent
    assert again.read_bytes() == b"first"
    files.remove()
    remove_tree(first.parent)


def test_the_client_library_is_never_shown_inline_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would write it under a name that anybody can foretell."""
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(yaml.safe_dump(DOCUMENT))
    with pytest.raises(ApiUnreachable):
        ApiServer.connect(kubeconfig).namespace_uid("kube-system")
    assert list(shared.glob("pykube*")) == []
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o700 for p in shared.iterdir())


def test_data_that_is_none_is_said(tmp_path: Path) -> None:
    """With the field's name, and without the data."""
    kubeconfig = tmp_path / "config"
    users = [{"name": "u", "user": {"client-key-data": "se cret"}}]
    kubeconfig.write_text(yaml.safe_dump({**DOCUMENT, "users": users}))
    with pytest.raises(ApiUnreachable, match="client-key-data is not base64") as raised:
        ApiServer.connect(kubeconfig)
    assert "se cret" not in str(raised.value)
