"""Nothing is lost unseen, on the real engine: verdict, gate, approval (laws 2, 5 and 14)."""

from tests.e2e.host import Host, eventually

COMMIT = (
    "cd ~ && mkdir -p repo && cd repo && git init -q . && "
    "git -c user.name=a -c user.email=a@x commit -q --allow-empty -m one"
)


def test_a_clean_session_is_purged_without_a_word(host: Host) -> None:
    """A home without repositories holds no work that git knows of."""
    host.apply("s")
    host.wait("s", "Running")
    host.patch("s", desiredState="Purged")
    host.wait("s", "Purged")
    assert host.status("s")["work"]["state"] == "Clean"
