"""From a raw spec to values: defaults, every fault by its field, and never an error."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.api.parsing import MOST_WORDS_BYTES, NOT_YET_SERVED, parse_spec
from controller.api.reasons import Reason
from controller.api.spec import DEFAULT_HOME, Identity, MountSpec, PortSpec
from controller.api.vocabulary import DesiredState, ExitPolicy, OnCrash, OnHostLoss, Security
from controller.reconcile.manifest import to_json
from controller.reconcile.recipe import make_recipe
from controller.workspace.instances import LARGEST
from tests.unit.reconcile.builders import IMAGE, manifest

INVALID, LATER = Reason.SPEC_INVALID, Reason.NOT_YET_SERVED


def raw(**fields: Any) -> dict[str, Any]:
    """The least spec that is served; fields replace its own."""
    return {
        "workspace": "w",
        "role": "r",
        "agent": "a",
        "backend": {"docker": {"host": "h"}},
        "image": {"ref": "i"},
        **fields,
    }


def mount(**fields: Any) -> dict[str, Any]:
    """The spec with one mount; fields replace those of a served one."""
    plain = {"name": "m", "mountPath": "/src", "hostPath": "/srv/src", "isolation": "Shared"}
    return raw(mounts=[{k: v for k, v in {**plain, **fields}.items() if v is not None}])


def fetched(url: str, **fields: Any) -> dict[str, Any]:
    """The spec with a clone that is fetched."""
    return mount(git={"url": url, **fields}, hostPath=None, isolation="Clone")


def faults(spec: dict[str, Any]) -> list[tuple[str, Reason]]:
    """What is wrong with a spec: fields and reasons."""
    return [(fault.field, fault.reason) for fault in parse_spec(spec).faults]


def test_the_least_spec_is_served_with_the_defaults() -> None:
    """What is unset is as the schema says, and an unset intent stays unset."""
    spec = parse_spec(raw())
    assert spec.faults == ()
    assert spec.desired is None
    assert spec.identity == Identity(workspace="w", role="r", agent="a", host="h")
    assert (spec.home, spec.tty, spec.security) == (DEFAULT_HOME, True, Security.RESTRICTED)
    assert (spec.exit_policy, spec.restore.on_host_loss, spec.restore.on_crash) == (None,) * 3
    assert (spec.memory_bytes, spec.nano_cpus, spec.ttl_after_purged) == (0, 0, None)
    assert (spec.command, spec.args, spec.resume_command) == (None, None, None)


def test_every_served_field_is_read() -> None:
    """Values arrive as they were written."""
    spec = parse_spec(
        mount(readOnly=True)
        | {
            "desiredState": "Kept",
            "home": {"mountPath": "/h"},
            "title": "t",
            "workingDir": "/w",
            "user": "7:8",
            "tty": False,
            "command": ["c"],
            "args": [],
            "resumeCommand": ["r", "1"],
            "env": [{"name": "A", "value": ""}],
            "ports": [{"name": "p", "containerPort": 80, "protocol": "UDP"}],
            "resources": {"limits": {"memory": "1Gi", "cpu": "250m"}},
            "exitPolicy": "Clean",
            "restore": {
                "onHostLoss": "Hold",
                "onCrash": "Restore",
                "maxAttempts": 2,
                "retryRun": 4,
                "backoff": {"initial": "2s", "max": "1m"},
            },
            "retention": {"ttlSecondsAfterPurged": 0},
            "security": "Baseline",
        }
    )
    assert spec.faults == ()
    assert spec.desired is DesiredState.KEPT
    assert (spec.home, spec.title, spec.working_dir, spec.user) == ("/h", "t", "/w", "7:8")
    assert (spec.command, spec.args, spec.resume_command) == (("c",), (), ("r", "1"))
    assert spec.tty is False
    assert spec.env == (("A", ""),)
    assert spec.mounts == (
        MountSpec(name="m", mount_path="/src", host_path="/srv/src", read_only=True),
    )
    assert spec.ports == (PortSpec(name="p", container_port=80, host_port=0, protocol="UDP"),)
    assert (spec.memory_bytes, spec.nano_cpus) == (1024**3, 250_000_000)
    assert spec.exit_policy is ExitPolicy.CLEAN
    assert (spec.restore.on_host_loss, spec.restore.on_crash) == (
        OnHostLoss.HOLD,
        OnCrash.RESTORE,
    )
    assert (spec.restore.max_attempts, spec.restore.retry_run) == (2, 4)
    assert spec.restore.backoff == timedelta(seconds=2)
    assert spec.restore.backoff_max == timedelta(minutes=1)
    assert spec.ttl_after_purged == timedelta(0)
    assert spec.security is Security.BASELINE


@pytest.mark.parametrize("path", list(NOT_YET_SERVED))
def test_what_is_not_served_yet_is_said_by_its_field(path: str) -> None:
    """Never ignored in silence: a person would think that it holds."""
    value: Any = "1h" if path.startswith("retention") else {"x": 1}
    for part in reversed(path.split(".")):
        value = {part: value}
    if path == "backend.kubernetes":
        value["backend"]["docker"] = None
    spec = raw() | value
    assert (path, LATER) in faults(spec)


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (raw(env=[{"name": "A"}]), ("env[0]", INVALID)),
        (raw(env=[{"name": "A", "valueFrom": {"hostEnv": "A"}}]), ("env[0].valueFrom", LATER)),
        (mount(isolation="Else"), ("mounts[0].isolation", INVALID)),
        (mount(isolation="Worktree", readOnly=True), ("mounts[0].readOnly", INVALID)),
        (mount(isolation="Clone", readOnly=True), ("mounts[0].readOnly", INVALID)),
        *(
            (mount(isolation="Clone", branch=name), ("mounts[0].branch", INVALID))
            for name in (
                "-b",
                "a..b",
                "a b",
                "a//b",
                "/a",
                "a/",
                "a.lock",
                "@",
                "HEAD",
                "a@{1}",
                "a:b",
                "a~1",
                "a\\b",
                ".a",
                "a/.b",
                "a.",
                "a\x07",
            )
        ),
        (mount(isolation=None), ("mounts[0].isolation", INVALID)),
        (mount(branch="b"), ("mounts[0].branch", INVALID)),
        (fetched("https://h/r", secretRef={"name": "s"}), ("mounts[0].git.secretRef", LATER)),
        *(
            (fetched(url), ("mounts[0].git.url", INVALID))
            for url in (
                "u",
                "/srv/repo",
                "file:///srv/repo",
                "ssh://git@h/r",
                "git@h:r",
                "ext::sh -c x",
                "-u",
                "https://",
                "https://person@h/r",
                "https://person:token@h/r",
                "https://h:x/r",
                "https://h/a b",
                "https://h/a\nb",
                "https://[::1/r",
            )
        ),
        (mount(git={"url": "https://h/r"}, hostPath=None), ("mounts[0].isolation", INVALID)),
        (
            mount(persistentVolumeClaim={"claimName": "c"}, hostPath=None),
            ("mounts[0].persistentVolumeClaim", LATER),
        ),
        (mount(hostPath=None), ("mounts[0]", INVALID)),
        (mount(git={"url": "u"}), ("mounts[0]", INVALID)),
        (mount(mountPath="src"), ("mounts[0].mountPath", INVALID)),
        (mount(mountPath="/"), ("mounts[0].mountPath", INVALID)),
        (mount(mountPath="/a/../b"), ("mounts[0].mountPath", INVALID)),
        (mount(mountPath="/a/"), ("mounts[0].mountPath", INVALID)),
        (mount(mountPath="/a//b"), ("mounts[0].mountPath", INVALID)),
        (mount(mountPath=DEFAULT_HOME), ("mounts[0].mountPath", INVALID)),
        (mount(mountPath="/run"), ("mounts[0].mountPath", INVALID)),
        (mount(mountPath="/run/sessionkeeper"), ("mounts[0].mountPath", INVALID)),
        (mount(mountPath="/run/sessionkeeper/in"), ("mounts[0].mountPath", INVALID)),
        (mount(hostPath="/srv/../etc"), ("mounts[0].hostPath", INVALID)),
        (mount(hostPath="srv"), ("mounts[0].hostPath", INVALID)),
        (raw(home={"mountPath": "/run"}), ("home.mountPath", INVALID)),
        (raw(home={"mountPath": "home"}), ("home.mountPath", INVALID)),
        (raw(backend={}), ("backend", INVALID)),
        (raw(backend={"docker": {"host": "h"}, "kubernetes": {}}), ("backend", INVALID)),
        (raw(image={}), ("image", INVALID)),
        (raw(image={"ref": "i", "build": {"ref": "x"}}), ("image", INVALID)),
        (raw(user="0"), ("user", Reason.RUN_AS_ROOT)),
        (raw(user="000:1000"), ("user", Reason.RUN_AS_ROOT)),
        (raw(resources={"requests": {"cpu": "1"}}), ("resources.requests.cpu", LATER)),
        (raw(resources={"limits": {"x.y/gpu": 1}}), ("resources.limits.x.y/gpu", LATER)),
        (raw(resources={"limits": {"memory": "much"}}), ("resources.limits.memory", INVALID)),
        (raw(resources={"limits": {"cpu": "-1"}}), ("resources.limits.cpu", INVALID)),
        (raw(desiredState="Paused"), ("desiredState", INVALID)),
        (raw(exitPolicy="Maybe"), ("exitPolicy", INVALID)),
        (raw(security="Privileged"), ("security", INVALID)),
        (raw(restore={"onCrash": "Panic"}), ("restore.onCrash", INVALID)),
        (raw(restore={"onHostLoss": "Panic"}), ("restore.onHostLoss", INVALID)),
        (raw(restore={"maxAttempts": "x"}), ("restore.maxAttempts", INVALID)),
        (raw(restore={"backoff": {"initial": "x"}}), ("restore.backoff.initial", INVALID)),
        (raw(restore={"backoff": {"max": "x"}}), ("restore.backoff.max", INVALID)),
        (
            raw(retention={"ttlSecondsAfterPurged": "soon"}),
            ("retention.ttlSecondsAfterPurged", INVALID),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_each_fault_is_named_by_its_field(spec: dict[str, Any], fault: tuple[str, Reason]) -> None:
    """Servers without CEL let it through, so it is refused here and said as SpecValid=False."""
    assert fault in faults(spec)


def test_two_mounts_at_one_place_are_refused() -> None:
    """The engine would refuse them with a text that names no field."""
    twice = mount()["mounts"] * 2
    assert faults(raw(mounts=twice)) == [("mounts[1].mountPath", INVALID)]


@pytest.mark.parametrize("path", ["/runs", "/run/sessionkeepers", "/home/agent2", "/home"])
def test_a_neighbouring_path_is_no_fault(path: str) -> None:
    """Only what meets the run directory or the very home is refused."""
    assert faults(mount(mountPath=path)) == []


def test_root_is_allowed_where_the_spec_says_baseline() -> None:
    """Whether the host allows Baseline is law 17's to say, not the parser's."""
    assert faults(raw(user="0", security="Baseline")) == []


@pytest.mark.parametrize("desired", list(DesiredState))
def test_a_faulty_spec_still_has_an_intent(desired: DesiredState) -> None:
    """A person can keep or purge a session whatever else is refused."""
    spec = parse_spec({"desiredState": str(desired), "security": "x", "restore": {"onCrash": "x"}})
    assert spec.desired is desired
    assert spec.faults


def test_each_fault_says_its_field_to_a_person() -> None:
    """The condition shows the sentence alone."""
    for fault in parse_spec({"security": "x", "image": {}}).faults:
        assert fault.message.startswith(f"spec.{fault.field}:")


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner)
)
SCALAR_FIELDS = st.sampled_from(
    ["desiredState", "workspace", "title", "user", "tty", "exitPolicy", "security", "workingDir"]
)


@given(st.dictionaries(SCALAR_FIELDS, SCALARS))
def test_no_value_of_a_plain_field_raises(fields: dict[str, Any]) -> None:
    """A server that checks less than ours must not stop the worker of a session."""
    parse_spec(raw() | fields)


@given(
    st.sampled_from(["restore", "retention", "resources", "image", "home", "backend"]),
    st.dictionaries(
        st.sampled_from(["backoff", "maxAttempts", "retryRun", "ttlSecondsAfterPurged", "ref"]),
        VALUES,
    ),
)
def test_no_value_below_a_group_raises(group: str, fields: dict[str, Any]) -> None:
    """Whatever stands where a mapping or a scalar is meant."""
    parse_spec(raw() | {group: fields})


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"image": {"ref": "../containers"}}, "image.ref"),
        ({"image": {"ref": "x/../../containers"}}, "image.ref"),
        ({"image": {"ref": "/containers"}}, "image.ref"),
        ({"user": "99999999999:0"}, "user"),
        ({"user": "1000:4294967296"}, "user"),
        ({"home": {"mountPath": "/a\0b"}}, "home.mountPath"),
        ({"resources": {"limits": {"memory": "9999999999E"}}}, "resources.limits.memory"),
        ({"resources": {"limits": {"cpu": "99999999999"}}}, "resources.limits.cpu"),
    ],
)
def test_what_engine_or_server_could_not_hold_is_refused(
    fields: dict[str, Any], field: str
) -> None:
    """No reference names another path of the engine's API, and no number leaves its range."""
    assert field in {fault.field for fault in parse_spec(raw() | fields).faults}


@pytest.mark.parametrize("field", ["command", "args", "resumeCommand", "env"])
def test_more_words_than_a_process_can_have_are_refused(field: str) -> None:
    """The field with which they become too many is named; one word fewer is served."""
    words = ["é" * 8192] * (MOST_WORDS_BYTES // (2 * 8192) + 1)
    filled = [{"name": "A", "value": word} for word in words] if field == "env" else words
    assert faults(raw(**{field: filled})) == [(field, INVALID)]
    assert faults(raw(**{field: filled[:-2]})) == []


def test_words_are_counted_together() -> None:
    """The kernel gives arguments and environment one space."""
    half = ["x" * 16384] * (MOST_WORDS_BYTES // 16384 // 2)
    assert faults(raw(command=half, args=half)) == [("args", INVALID)]


def test_every_spec_that_is_served_has_a_record_that_can_be_read_back() -> None:
    """Whatever JSON makes of its words: none is served and then lost as a corrupt manifest."""
    words = ["\x01" * 16384] * (MOST_WORDS_BYTES // 16385)
    spec = parse_spec(raw(command=words))
    assert spec.faults == ()
    record = replace(manifest(), recipe=make_recipe(spec, IMAGE))
    assert len(to_json(record)) < LARGEST


def worktree(*others: dict[str, Any], **fields: Any) -> list[tuple[str, Reason]]:
    """What is wrong with a worktree beside other mounts."""
    base = {"name": "w", "mountPath": "/w", "hostPath": "/srv/r", "isolation": "Worktree"}
    return faults(raw(mounts=[{**base, **fields}, *others]))


def shared(path: str, *, at: str = "/other", read_only: bool = False) -> dict[str, Any]:
    """A directory of the host itself."""
    fields = {"name": "o", "mountPath": at, "hostPath": path, "isolation": "Shared"}
    return {**fields, "readOnly": read_only}


@pytest.mark.parametrize("source", ["/srv", "/srv/r", "/srv/r/.git", "/srv/r/.git/hooks"])
def test_a_worktrees_repository_is_given_by_no_other_mount(source: str) -> None:
    """ADR 0005: the session would write to all of it, or to what steers the git of its owner."""
    assert worktree(shared(source)) == [("mounts[0].hostPath", INVALID)]
    assert worktree(shared(source, read_only=True)) == []
    assert worktree(shared("/srv/r2")) == []


@pytest.mark.parametrize("place", ["/srv", "/srv/r", "/srv/r/.git", "/srv/r/.git/refs"])
def test_a_worktrees_repository_is_hidden_by_no_mount(place: str) -> None:
    """The session sees it where the host has it."""
    assert worktree(mountPath=place) == [("mounts[0].mountPath", INVALID)]
    assert worktree(shared("/else", at=place)) == [("mounts[0].mountPath", INVALID)]
    assert worktree(mountPath="/srv/r2") == []


@pytest.mark.parametrize("url", ["https://h/r.git", "http://h:8080/r", "git://[::1]/r?a=b"])
def test_a_url_that_can_be_fetched(url: str) -> None:
    """It is read as it is."""
    spec = parse_spec(fetched(url))
    assert (spec.faults, spec.mounts[0].url, spec.mounts[0].host_path) == ((), url, "")
