"""The flags of a controller, held against one another before anything is touched."""

from pathlib import Path
from typing import Any

import pytest

from controller.settings import Settings, SettingsRefused


def settings(**changes: Any) -> Settings:
    """Good settings, with some of them replaced."""
    return Settings(**{"host": "h1", "all_namespaces": True, **changes})


def test_the_defaults_are_good() -> None:
    """A host and a scope are all that must be said."""
    assert settings().docker_socket == Path("/var/run/docker.sock")
    assert settings(docker_host="tcp://10.0.0.1:2376").docker_socket is None


@pytest.mark.parametrize("host", ["", "-a", "a-", "A", "a.b", "a/b", "../x", "a" * 64, "a\n", "ä"])
def test_a_host_is_a_dns_label(host: str) -> None:
    """A host's name is part of object names and paths."""
    with pytest.raises(SettingsRefused, match="DNS label"):
        settings(host=host)


def test_a_scope_is_given_once() -> None:
    """Neither no namespace nor both kinds of scope can be served."""
    for scope in (
        {"all_namespaces": False},
        {"all_namespaces": True, "namespaces": ("a",)},
    ):
        with pytest.raises(SettingsRefused, match="--all-namespaces"):
            settings(**scope)
    assert settings(all_namespaces=False, namespaces=("a", "b")).namespaces == ("a", "b")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"all_namespaces": False, "namespaces": ("a*",)}, "--namespace 'a\\*'"),
        ({"metrics_port": 0}, "--metrics-port"),
        ({"metrics_port": 65536}, "--metrics-port"),
        ({"resync_seconds": 0.0}, "--resync-seconds"),
        ({"resync_seconds": float("nan")}, "--resync-seconds"),
        ({"resync_seconds": float("inf")}, "--resync-seconds"),
        ({"docker_host": "/var/run/docker.sock"}, "--docker-host"),
        ({"docker_host": "unix://var/run/docker.sock"}, "--docker-host"),
        ({"docker_host": "npipe:////./pipe/docker"}, "--docker-host"),
        ({"docker_host": "tcp://"}, "--docker-host"),
        ({"state_root": Path("state")}, "--state-root"),
        ({"state_root": Path("/a/../b")}, "--state-root"),
        ({"state_root": Path("//a")}, "--state-root"),
        ({"run_root": Path("run")}, "--run-root"),
        ({"state_root": Path("/a"), "run_root": Path("/a/run")}, "in one another"),
        ({"state_root": Path("/a/state"), "run_root": Path("/a")}, "in one another"),
        ({"state_root": Path("/")}, "in one another"),
        ({"allow_source": (Path("src"),)}, "--allow-source src"),
        ({"allow_source": (Path("/"),)}, "every file"),
        ({"allow_source": (Path("/var/lib/sessionkeeper/sessions"),)}, "must not lie in"),
    ],
)
def test_what_can_not_work_is_refused_in_words(change: dict[str, Any], words: str) -> None:
    """Each bad flag is named in the sentence that refuses it."""
    with pytest.raises(SettingsRefused, match=words):
        settings(**change)


def test_a_host_says_what_it_gives_beyond_the_defaults() -> None:
    """`SessionHost.status.allows` repeats the flags (design.md 2)."""
    given = settings(allow_source=(Path("/src"),), baseline_allowed=True)
    assert given.allows() == ("source=/src", "security=Baseline")
    assert settings().allows() == ()
