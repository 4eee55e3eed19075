"""How soon a person sees it: launch, an end, a change of the spec."""

import statistics
import time

import docker

from controller.api.names import LABEL_OWNER
from tests.bench.result import Result, percentile
from tests.bench.watching import watching
from tests.e2e.host import SLEEPER, Host

ROUNDS = 10


def launch(host: Host) -> Result:
    """From apply to Running, against the engine's own create and start of the same container."""
    took = []
    with watching(host.cluster, host.namespace) as watch:
        host.apply("warm")
        watch.first("warm", phase="Running")
        for number in range(ROUNDS):
            began = time.time()
            host.api.request(
                "POST",
                f"/apis/sessionkeeper.io/v1alpha1/namespaces/{host.namespace}/sessioninstances",
                body=host.manifest(f"l{number}"),
            )
            took.append(watch.first(f"l{number}", phase="Running") - began)
    measured, floor = statistics.median(took), statistics.median(_by_engine(host))
    more = measured - floor
    return Result(
        what="apply → Running (median of 10)",
        measured=f"{measured:.2f} s",
        floor=f"{floor:.2f} s, create and start by the engine",
        ratio=f"{measured / floor:.2f}, {more:+.2f} s",
        reach="≤ 1.5, and ≤ 1 s more",
        reached=measured / floor <= 1.5 and more <= 1,
    )


def _by_engine(host: Host) -> list[float]:
    client = docker.APIClient(base_url=host.cluster.docker_host)
    template = host.container("warm").attrs
    took = []
    for number in range(ROUNDS):
        began = time.time()
        network = client.create_network(
            f"bench-{host.name}-{number}", labels={LABEL_OWNER: host.owner}
        )
        made = client.create_container(
            template["Image"],
            command=template["Config"]["Cmd"],
            entrypoint=SLEEPER,
            user="1000:1000",
            labels={LABEL_OWNER: host.owner},
            host_config=client.create_host_config(
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                mounts=template["HostConfig"]["Mounts"],
                network_mode=network["Id"],
            ),
        )
        client.start(made["Id"])
        took.append(time.time() - began)
    client.close()
    return took


def death(host: Host) -> Result:
    """From a container's end, by the engine's own stamp, to the status that says so."""
    names = [f"d{number}" for number in range(20)]
    late = []
    with watching(host.cluster, host.namespace) as watch:
        for name in names:
            host.apply(
                name, command=["sh", "-c", "while [ ! -e /tmp/go ]; do sleep 0.05; done; exit 3"]
            )
            watch.first(name, phase="Running")
        engine = docker.APIClient(base_url=host.cluster.docker_host, timeout=30)
        events = engine.events(filters={"event": "die"}, decode=True)
        for name in names:
            host.container(name).exec_run(["touch", "/tmp/go"], detach=True)
            died = next(
                e for e in events if e["Actor"]["Attributes"].get("sessionkeeper.io/name") == name
            )
            late.append(watch.first(name, phase="Exited") - died["timeNano"] / 1e9)
        events.close()
    worst = percentile(late, 0.95)
    return Result(
        what="a container dies → the status says so (p95 of 20)",
        measured=f"{worst:.3f} s",
        floor="the engine's stamp of the end",
        ratio="none",
        reach="≤ 0.5 s",
        reached=worst <= 0.5,
    )


def change(host: Host) -> Result:
    """From the API server's own watch event of a patch to the first call of the engine."""
    names = [f"c{number}" for number in range(20)]
    late = []
    with watching(host.cluster, host.namespace) as watch:
        for name in names:
            host.apply(name)
            watch.first(name, phase="Running")
        engine = docker.APIClient(base_url=host.cluster.docker_host, timeout=60)
        events = engine.events(filters={"event": "kill"}, decode=True)
        for name in names:
            host.patch(name, desiredState="Kept")
            told = watch.desired(name, "Kept")
            killed = next(
                e for e in events if e["Actor"]["Attributes"].get("sessionkeeper.io/name") == name
            )
            late.append(killed["timeNano"] / 1e9 - told)
            watch.first(name, phase="Kept")
        events.close()
    worst = percentile(late, 0.95)
    return Result(
        what="spec patched → first engine call (p95 of 20)",
        measured=f"{worst:.3f} s",
        floor="the API server's own watch event",
        ratio="none",
        reach="≤ 0.2 s",
        reached=worst <= 0.2,
    )
