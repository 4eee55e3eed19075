"""`python -m tests.cluster up|down|env`: an environment that stays, for people to try things in.

`prepare` only builds what is slow to build, so that whoever comes next need not wait for it.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from controller.workspace.trees import remove_tree
from tests.cluster.cache import cache_directory, say
from tests.cluster.command import running, wait_until
from tests.cluster.environment import ROOT, Cluster, prepare
from tests.cluster.outer_engine import answers, end_lasting_engine, lasting_engine, outer_engine
from tests.cluster.removal import remove_project

_HOST = "local"
_COMMAND = "controller"


def _record() -> Path:
    return cache_directory() / "up.json"


def main() -> int:
    """Run a command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("command", choices=("prepare", "up", "down", "env"))
    command = parser.parse_args().command
    if command == "prepare":
        with outer_engine() as outer:
            prepare(outer)
        return 0
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
    if record is not None and running(record["controller"], _COMMAND):
        say("it is up already")
        _print_environment(record)
        return 0
    if record is not None:
        say("what was up has ended by itself; what is left of it is removed first")
        _down(record)
    try:
        made = Cluster(lasting_engine(), shared=_shared())
        try:
            say("starting etcd, API server, engine and controller")
            made.up()
            record = _start_controller(made)
        except BaseException:
            made.down()
            raise
    except BaseException:
        end_lasting_engine()
        raise
    _record().write_text(json.dumps(record))
    _print_environment(record)
    return 0


def _shared() -> tuple[Path, ...]:
    """The current directory, for sessions to work in; never all of the machine."""
    here = Path.cwd()
    return () if here == Path("/") else (here,)


def _start_controller(made: Cluster) -> dict[str, Any]:
    log = made.run_dir / "controller.log"
    command = [
        sys.executable, "-m", _COMMAND, "run", "--host", _HOST, "--all-namespaces",
        "--kubeconfig", str(made.kubeconfig), "--docker-host", made.docker_host,
        "--state-root", str(made.work_dir / "state"), "--run-root", str(made.work_dir / "run"),
        "--allow-security", "baseline", "--allow-worktree",
        *(f"--allow-source={path}" for path in made.shared),
    ]  # fmt: skip
    with log.open("ab") as stream:
        controller = subprocess.Popen(
            command, cwd=ROOT, stdout=stream, stderr=stream, start_new_session=True
        )

    def serves() -> bool:
        if controller.poll() is not None:
            raise RuntimeError(f"the controller ended:\n{log.read_text(errors='replace')[-4000:]}")
        host = made.kubectl(
            "get", "sessionhost", _HOST, "-o", "jsonpath={.status.reachable}", check=False
        )
        return host.stdout == "true"

    try:
        wait_until(serves, "the controller serves its host")
    except BaseException:
        controller.kill()
        controller.wait()
        raise
    return {
        "project": made.project,
        "outer": made.outer,
        "run_dir": str(made.run_dir),
        "kubeconfig": str(made.kubeconfig),
        "docker_host": made.docker_host,
        "controller": controller.pid,
        "image": made.session_image,
        "shared": [str(path) for path in made.shared],
        "log": str(log),
    }


def _print_environment(record: dict[str, Any]) -> None:
    sys.stdout.write(
        f"""
# For kubectl and docker in this shell:
export KUBECONFIG={record["kubeconfig"]}
export DOCKER_HOST={record["docker_host"]}

# A first session of your own{" in this directory" if record["shared"] else ""}:
cat > session.yaml <<'YAML'
{_session(record)}
YAML
kubectl apply -f session.yaml
kubectl get sessions

# Work in it:
docker exec -it "$(docker ps -q -f label=sessionkeeper.io/name=first \\
  -f label=sessionkeeper.io/component=session)" sh

# Cut the power of its host, bring the host back, and see the session return:
docker -H {record["outer"]} kill -s KILL {record["project"]}-engine
docker -H {record["outer"]} start {record["project"]}-engine
kubectl get sessions --watch

# The controller's log is {record["log"]}
# `make down` ends all of this.
"""
    )


def _session(record: dict[str, Any]) -> str:
    text = f"""\
apiVersion: sessionkeeper.io/v1alpha1
kind: SessionInstance
metadata:
  name: first
spec:
  workspace: mine
  role: shell
  agent: me
  backend: {{docker: {{host: {_HOST}}}}}
  image: {{ref: "{record["image"]}"}}"""
    for path in record["shared"]:
        owner = Path(path).stat()
        security = "" if owner.st_uid else "\n  security: Baseline"
        text += f"""{security}
  user: "{owner.st_uid}:{owner.st_gid}"
  workingDir: /here
  mounts:
    - {{name: here, mountPath: /here, isolation: Shared, hostPath: {json.dumps(path)}}}"""
    return text


def _down(record: dict[str, Any]) -> int:
    _end_controller(record["controller"])
    if answers(record["outer"]):
        remove_project(record["outer"], record["project"])
    with suppress(OSError):
        remove_tree(Path(record["run_dir"]))
    end_lasting_engine()
    _record().unlink()
    say("everything of it is stopped and removed")
    return 0


def _end_controller(pid: int) -> None:
    if not running(pid, _COMMAND):
        return
    os.kill(pid, signal.SIGTERM)
    try:
        wait_until(lambda: not running(pid, _COMMAND), "the controller ended", seconds=30)
    except RuntimeError as error:
        say(f"{error}; it is killed")
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
