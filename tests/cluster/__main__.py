"""`python -m tests.cluster up|down|env`: an environment that stays, for people to try things in."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.cluster.cache import cache_directory, say
from tests.cluster.environment import ROOT, Cluster
from tests.cluster.outer_engine import lasting_engine

_HOST = "local"


def _record() -> Path:
    return cache_directory() / "up.json"


def main() -> int:
    """Run a command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("command", choices=("up", "down", "env"))
    command = parser.parse_args().command
    if command == "up":
        return _up()
    record = _read()
    if record is None:
        sys.stderr.write("Nothing is up. `make up` starts it.\n")
        return 1
    if command == "env":
        _print_environment(record)
        return 0
    return _down(record)


def _read() -> dict[str, Any] | None:
    path = _record()
    return json.loads(path.read_text()) if path.exists() else None


def _up() -> int:
    record = _read()
    if record is not None:
        say("it is up already")
        _print_environment(record)
        return 0
    made = Cluster(lasting_engine())
    say("starting etcd, API server and engine")
    made.up()
    log = made.run_dir / "controller.log"
    command = [
        sys.executable, "-m", "controller", "run", "--host", _HOST, "--all-namespaces",
        "--kubeconfig", str(made.kubeconfig), "--docker-host", made.docker_host,
        "--state-root", str(made.work_dir / "state"), "--run-root", str(made.work_dir / "run"),
    ]  # fmt: skip
    with log.open("ab") as stream:
        controller = subprocess.Popen(
            command, cwd=ROOT, stdout=stream, stderr=stream, start_new_session=True
        )
    record = {
        "project": made.project,
        "outer": made.outer,
        "run_dir": str(made.run_dir),
        "kubeconfig": str(made.kubeconfig),
        "docker_host": made.docker_host,
        "controller": controller.pid,
        "image": made.session_image,
        "log": str(log),
    }
    _record().write_text(json.dumps(record))
    _print_environment(record)
    return 0


def _print_environment(record: dict[str, Any]) -> None:
    session = Path("session.yaml")
    sys.stdout.write(
        f"""
# For kubectl and docker in this shell:
export KUBECONFIG={record["kubeconfig"]}
export DOCKER_HOST={record["docker_host"]}

# A first session of your own:
cat > {session} <<'YAML'
apiVersion: sessionkeeper.io/v1alpha1
kind: SessionInstance
metadata:
  name: first
spec:
  workspace: mine
  role: shell
  agent: sh
  backend: {{docker: {{host: {_HOST}}}}}
  image: {{ref: "{record["image"]}"}}
YAML
kubectl apply -f {session}
kubectl get sessions --watch

# Work in it, then see it survive:
docker exec -it "$(docker ps -q -f label=sessionkeeper.io/name=first \\
  -f label=sessionkeeper.io/component=session)" sh
docker -H {record["outer"]} kill -s KILL {record["project"]}-engine
docker -H {record["outer"]} start {record["project"]}-engine

# The controller's log is {record["log"]}; `make down` ends all of this.
"""
    )


def _down(record: dict[str, Any]) -> int:
    try:
        os.kill(record["controller"], signal.SIGTERM)
        _wait_for_end(record["controller"])
    except ProcessLookupError:
        say("the controller had ended already")
    compose = [
        "docker-compose", "-H", record["outer"], "-p", record["project"],
        "-f", f"{record['run_dir']}/docker-compose.yaml",
    ]  # fmt: skip
    done = subprocess.run(
        [*compose, "down", "-v", "-t", "0"], capture_output=True, text=True, timeout=120
    )
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        return 1
    subprocess.run(["rm", "-rf", record["run_dir"]], check=True, timeout=60)
    _record().unlink()
    say("everything of it is stopped and removed")
    return 0


def _wait_for_end(pid: int) -> None:
    end = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
