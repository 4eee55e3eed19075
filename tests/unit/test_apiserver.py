"""What each answer of an API server, and each silence, is taken for; over real connections."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.apiserver import (
    ApiAbsent,
    ApiConflict,
    ApiError,
    ApiForbidden,
    ApiRefused,
    ApiServer,
    ApiUnreachable,
)
from tests.unit.loopback import Answer, Server, kubeconfig, refusal, serving

SECRET = "s3cr3t"  # noqa: S105 - nobody's
PLAIN = "text/plain"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture
def api(server: Server, tmp_path: Path) -> ApiServer:
    return ApiServer.connect(kubeconfig(tmp_path, server.url)).hurried((5.0, 5.0))


def error_of(api: ApiServer) -> ApiError:
    """The error of a request."""
    with pytest.raises(ApiError) as raised:
        api.get_session("ns", "s")
    assert "\n" not in str(raised.value)
    return raised.value


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ApiRefused),
        (401, ApiForbidden),
        (403, ApiForbidden),
        (404, ApiAbsent),
        (409, ApiConflict),
        (422, ApiRefused),
        (429, ApiUnreachable),
        (500, ApiUnreachable),
        (503, ApiUnreachable),
        (504, ApiUnreachable),
    ],
)
def test_a_refusal_is_told_by_what_follows(
    api: ApiServer, server: Server, status: int, kind: type[ApiError]
) -> None:
    """Each status has one meaning, and the server's own words are kept for people."""
    server.answer = refusal(status)
    error = error_of(api)
    assert type(error) is kind
    assert "its own words" in str(error)


def test_missing_rights_conclude_nothing() -> None:
    """Law 3, case C13: who may not ask knows as little as who gets no answer."""
    assert issubclass(ApiForbidden, ApiUnreachable)
    assert not issubclass(ApiAbsent, ApiUnreachable)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=404, body=b"404 page not found\n", headers={"Content_Type": PLAIN}),
        Answer(status=404, body=b"<html>no such site</html>"),
        Answer(status=404, body=b'{"message": "no route"}'),
    ],
)
def test_only_the_api_itself_says_absent(api: ApiServer, server: Server, answer: Answer) -> None:
    """Law 3: a path that is not served, or a proxy's 404, is no definite absence."""
    server.answer = answer
    assert type(error_of(api)) is ApiRefused


@pytest.mark.parametrize("body", [b"<html>please log in</html>", b"[]", b"", b"\xff"])
def test_an_answer_that_is_no_object_is_no_answer(
    api: ApiServer, server: Server, body: bytes
) -> None:
    """Law 3: what a portal answers with 200 is neither an empty list nor an empty object."""
    server.answer = Answer(body=body)
    assert type(error_of(api)) is ApiUnreachable
    with pytest.raises(ApiUnreachable):
        api.list_sessions()


@pytest.mark.parametrize(
    ("said", "understood"),
    [("7", 7.0), ("0", 0.0), ("", None), ("Fri, 31 Dec 1999 23:59:59 GMT", None), ("\xb2", None)],
)
@pytest.mark.parametrize("status", [429, 503])
def test_how_long_to_wait_is_handed_on(
    api: ApiServer, server: Server, status: int, said: str, understood: float | None
) -> None:
    """A server that asks to be left alone for some seconds is understood."""
    server.answer = refusal(status, Retry_After=said)
    error = error_of(api)
    assert isinstance(error, ApiUnreachable)
    assert error.retry_after == understood


def test_a_withheld_answer_is_not_waited_for(api: ApiServer, server: Server) -> None:
    """Every call has a time-out."""
    server.answer = Answer(withheld=True)
    assert type(error_of(api.hurried((5.0, 0.1)))) is ApiUnreachable


def test_an_answer_cut_off_is_no_answer(api: ApiServer, server: Server) -> None:
    """A connection that breaks within an answer, and the next request on a new one."""
    server.answer = Answer(cut=True)
    assert type(error_of(api)) is ApiUnreachable
    server.answer = Answer(body=b'{"kind": "SessionInstance"}')
    assert api.get_session("ns", "s") == {"kind": "SessionInstance"}


def test_nobody_listens(server: Server, tmp_path: Path) -> None:
    """A refused connection is said in a sentence that names it."""
    api = ApiServer.connect(kubeconfig(tmp_path, server.url))
    server.end()
    error = error_of(api)
    assert type(error) is ApiUnreachable
    assert str(error) == "The API server does not answer (ConnectionError)."


def test_a_renewed_token_is_read_after_401(server: Server, tmp_path: Path) -> None:
    """Tokens are renewed in their file; one refused request is all that an old one costs."""
    api = ApiServer.connect(kubeconfig(tmp_path, server.url, token=SECRET))
    server.wanted = f"Bearer {SECRET}"
    api.get_session("ns", "s")
    server.wanted = f"Bearer {SECRET.upper()}"
    kubeconfig(tmp_path, server.url, token=SECRET.upper())
    assert type(error_of(api)) is ApiForbidden
    assert api.get_session("ns", "s") == {}


@pytest.mark.parametrize(
    "user",
    [
        {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "/no/such"}},
        {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "false"}},
        {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "echo"}},
        {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "true"}},
        {"exec": {}},
        {"auth-provider": {"name": "gcp", "config": {}}},
        {"token": f"{SECRET}\n"},
        [SECRET],
    ],
)
def test_credentials_that_can_not_be_had(server: Server, tmp_path: Path, user: Any) -> None:
    """A plug-in that fails or a malformed token is a sentence without the secret (law 8)."""
    path = kubeconfig(tmp_path, server.url)
    path.write_text(path.read_text().replace('"user": {}', f'"user": {json.dumps(user)}'))
    error = error_of(ApiServer.connect(path))
    assert type(error) is ApiUnreachable
    assert "credentials" in str(error)
    assert SECRET not in str(error)


def test_a_certificate_that_vanished(server: Server, tmp_path: Path) -> None:
    """A file that a kubeconfig names and that goes away later is named, and read when back."""
    certificate = tmp_path / "ca.crt"
    certificate.write_text("")
    path = kubeconfig(tmp_path, "https://127.0.0.1:1")
    config = json.loads(path.read_text())
    config["clusters"][0]["cluster"]["certificate-authority"] = str(certificate)
    path.write_text(json.dumps(config))
    api = ApiServer.connect(path)
    certificate.unlink()
    assert str(certificate) in str(error_of(api))
    kubeconfig(tmp_path, server.url)
    assert api.get_session("ns", "s") == {}


GOOD = '{"name": "c", "context": {"cluster": "c"}}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "word",
        "{}",
        f"users: [{{user: {{token: {SECRET}",
        f"\t{SECRET}",
        "\x00",
        "current-context: c",
        '{"current-context": "c", "contexts": null}',
        f'{{"current-context": "d", "contexts": [{GOOD}], "clusters": []}}',
        f'{{"current-context": "c", "contexts": [{GOOD}], "clusters": []}}',
        f'{{"current-context": "c", "contexts": [{GOOD}], "clusters": [{{"name": "c"}}]}}',
        f'{{"current-context": "c", "contexts": [{GOOD}],'
        ' "clusters": [{"name": "c", "cluster": {"server": 5}}]}',
        f'{{"current-context": "c", "contexts": [{GOOD}], "clusters": [{{"name": "c",'
        ' "cluster": {"certificate-authority-data": "x"}}]}',
    ],
)
def test_a_broken_kubeconfig_gives_a_sentence(tmp_path: Path, text: str) -> None:
    """Whatever is in the file, one line says so, and quotes no secret of it (law 8)."""
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ApiUnreachable) as raised:
        ApiServer.connect(path)
    assert "onfig" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert SECRET not in str(raised.value)


def test_no_kubeconfig_gives_a_sentence(tmp_path: Path) -> None:
    """A file that is not there, or is none, is named."""
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(ApiUnreachable, match=str(path)):
            ApiServer.connect(path)


def test_threads_have_a_connection_each(api: ApiServer, server: Server) -> None:
    """One client may be used from several threads at once."""
    server.answer = Answer(body=b'{"kind": "SessionInstance"}')
    got: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda: got.append(api.get_session("ns", "s"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [{"kind": "SessionInstance"}] * 4
