"""The command line: `sessionkeeper run`, `doctor` and `version`."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from controller import __version__
from controller.api.spec import DEFAULT_EXPIRE_AT_ONCE
from controller.logs import LogFormat, configure
from controller.settings import (
    DEFAULT_DOCKER_HOST,
    DEFAULT_INSPECTOR_IMAGE,
    DEFAULT_RESYNC_SECONDS,
    DEFAULT_RUN_ROOT,
    DEFAULT_STATE_ROOT,
    Settings,
    SettingsRefused,
)

USAGE_ERROR = 2
_EXAMPLES = """\
examples:
  sessionkeeper doctor --host box1 --all-namespaces
  sessionkeeper run --host box1 --all-namespaces --allow-source /home/ann/src
"""


def _pass(name: str) -> None:
    del name


def main(
    arguments: Sequence[str] | None = None, *, checkpoint: Callable[[str], None] = _pass
) -> int:
    """Run a command and return its exit status: 0 done, 1 failed, 2 wrong usage.

    `checkpoint` is called with the name of each effect of a controller, before and after it, for
    tests that end the process there.
    """
    options = _parser().parse_args(arguments)
    if options.command == "version":
        print(f"sessionkeeper {__version__}")
        return 0
    if options.command == "adopt":
        from controller.adoption import adopt

        return adopt(
            options.state_root, engine=options.engine, session=options.session, out=sys.stdout
        )
    if options.command == "archive":
        return _archive(options)
    try:
        settings = _settings(options)
    except SettingsRefused as error:
        sys.stderr.write(f"sessionkeeper: {error}\n")
        return USAGE_ERROR
    if options.command == "doctor":
        from controller.doctor import doctor

        return doctor(settings, sys.stdout)
    return _run(settings, checkpoint)


def _archive(options: argparse.Namespace) -> int:
    from controller import archiving

    if options.what == "list":
        return archiving.list_entries(options.state_root, sys.stdout)
    if options.what == "show":
        return archiving.show(options.state_root, options.entry, sys.stdout)
    if options.what == "purge":
        return archiving.purge(options.state_root, options.entry, options.discard, sys.stdout)
    from controller.apiserver import ApiError, ApiServer

    try:
        api = ApiServer.connect(options.kubeconfig)
    except ApiError as error:
        sys.stderr.write(f"sessionkeeper: {error}\n")
        return 1
    return archiving.restore(
        options.state_root, options.entry, new_name=options.name, api=api, out=sys.stdout
    )


def _run(settings: Settings, checkpoint: Callable[[str], None]) -> int:
    from controller.apiserver import ApiError
    from controller.operator import run

    configure(settings.log_format)
    try:
        return run(settings, checkpoint)
    except ApiError as error:
        sys.stderr.write(f"sessionkeeper: {error}\n")
        return 1


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        host=options.host,
        docker_host=options.docker_host,
        state_root=options.state_root,
        run_root=options.run_root or Path(DEFAULT_RUN_ROOT) / options.host,
        namespaces=tuple(options.namespace),
        all_namespaces=options.all_namespaces,
        allow_source=tuple(options.allow_source),
        worktree_allowed=options.allow_worktree,
        baseline_allowed="baseline" in options.allow_security,
        inspector_image=options.inspector_image,
        expire_at_once=options.expire_at_once,
        metrics_port=options.metrics_port,
        log_format=LogFormat(options.log_format),
        kubeconfig=options.kubeconfig,
        resync_seconds=options.resync_seconds,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sessionkeeper",
        description="Keeps container sessions alive across the loss of their host.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sessionkeeper {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="serve the sessions of one Docker host",
        description="Serves the sessions of one Docker host until SIGTERM or SIGINT. A second "
        "process for the same host stands by and takes over when the first is gone.",
    )
    doctor = commands.add_parser(
        "doctor",
        help="check API server, CRDs, permissions, engine and directories",
        description="Checks what `run` would need with the same flags, changes nothing, and says "
        "what to do about each fault. Exits with 1 if there is one.",
    )
    for command in (run, doctor):
        _common(command)
    _adopt(commands.add_parser("adopt", help="accept what only the host's owner may accept"))
    _archives(commands.add_parser("archive", help="what deletions and automatic cleans put aside"))
    commands.add_parser("version", help="print the version")
    return parser


def _adopt(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Accepts, with the controller of the host stopped, an engine that is not the one known; "
        "or what an API server that was restored from a backup says of a session, and the place "
        "where the session's worktrees lie now."
    )
    _state_root(command)
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--engine", action="store_true", help="the engine that answers next is ours")
    what.add_argument("--session", metavar="NAMESPACE/NAME", help="go on with what its object says")


def _archives(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Lists, shows, restores and removes what deletions and automatic cleans moved to the "
        "archive under the state root. The controller may go on meanwhile."
    )
    commands = command.add_subparsers(dest="what", required=True, metavar="WHAT")
    parsers = {
        "list": commands.add_parser("list", help="every entry on a line"),
        "show": commands.add_parser("show", help="what an entry was, and where its data is"),
        "restore": commands.add_parser("restore", help="make a kept session of an entry again"),
        "purge": commands.add_parser("purge", help="remove an entry for good"),
    }
    for name, parser in parsers.items():
        _state_root(parser)
        if name != "list":
            parser.add_argument("entry", metavar="ENTRY", help="as `archive list` shows it")
    parsers["restore"].add_argument("--name", help="another name for the session")
    parsers["restore"].add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="how to reach the API server (default: as `run` has it)",
    )
    parsers["purge"].add_argument(
        "--discard",
        default="",
        metavar="DIGEST",
        help="the digest of unsaved work that was seen, as `archive show` tells it; the name of "
        "the entry where its work was not assessed",
    )


def _state_root(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--state-root",
        type=Path,
        default=Path(DEFAULT_STATE_ROOT),
        metavar="DIR",
        help="the one that the host's controller runs with (default: %(default)s)",
    )


def _common(command: argparse.ArgumentParser) -> None:
    _places(command)
    _allowances(command)
    _operation(command)


def _places(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--backend", choices=("docker",), default="docker", help="what runs sessions")
    add(
        "--host",
        required=True,
        metavar="NAME",
        help="the host that this process serves: spec.backend.docker.host of its sessions",
    )
    add(
        "--docker-host",
        default=DEFAULT_DOCKER_HOST,
        metavar="URL",
        help="the engine (default: %(default)s)",
    )
    add(
        "--state-root",
        type=Path,
        metavar="DIR",
        default=Path(DEFAULT_STATE_ROOT),
        help="where homes and manifests live, on a disk that survives (default: %(default)s)",
    )
    add(
        "--run-root",
        type=Path,
        metavar="DIR",
        default=None,
        help=f"where run directories live, memory-backed (default: {DEFAULT_RUN_ROOT}/HOST)",
    )


def _allowances(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--namespace",
        action="append",
        default=[],
        metavar="NAME",
        help="a namespace to serve; repeatable",
    )
    add("--all-namespaces", action="store_true", help="serve the namespaces of the whole cluster")
    add(
        "--allow-source",
        type=Path,
        metavar="DIR",
        action="append",
        default=[],
        help="let sessions mount directories inside this one; repeatable (default: none)",
    )
    add(
        "--allow-worktree",
        action="store_true",
        help="let sessions have worktrees, and so write to repositories inside --allow-source",
    )
    add(
        "--allow-security",
        choices=("baseline",),
        action="append",
        default=[],
        help="let sessions ask for spec.security: Baseline (default: Restricted only)",
    )
    add(
        "--inspector-image",
        default=DEFAULT_INSPECTOR_IMAGE,
        metavar="IMAGE",
        help="the image that looks at a session's work, on the engine (default: %(default)s)",
    )


def _operation(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--metrics-port",
        type=int,
        default=None,
        metavar="PORT",
        help="serve /metrics and /healthz on loopback at this port (default: none)",
    )
    add(
        "--log-format",
        choices=[str(f) for f in LogFormat],
        default=str(LogFormat.TEXT),
        help="how log lines are written to standard error (default: %(default)s)",
    )
    add(
        "--kubeconfig",
        type=Path,
        default=None,
        metavar="FILE",
        help="how to reach the API server (default: the Pod's account, else KUBECONFIG, else "
        "~/.kube/config)",
    )
    add(
        "--expire-at-once",
        type=int,
        metavar="NUMBER",
        default=DEFAULT_EXPIRE_AT_ONCE,
        help="how many kept sessions may come to the end of keepFor within an hour; beyond that "
        "all of them wait for a person (default: %(default)s)",
    )
    add(
        "--resync-seconds",
        type=float,
        metavar="SECONDS",
        default=DEFAULT_RESYNC_SECONDS,
        help="how often engine and sessions are listed as a safety net (default: %(default)g)",
    )


if __name__ == "__main__":
    sys.exit(main())
