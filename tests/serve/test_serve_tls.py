"""TLS: the service speaks it where it is given a certificate."""

import contextlib
import http.client
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from events import START
from program import FIELDS, RULE, line, zveil
from service import Service, ask

OPENSSL = shutil.which("openssl")


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    if OPENSSL is None:
        pytest.skip("openssl is not there to make a certificate")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


def test_it_speaks_tls(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with Service("--tls-cert", cert, "--tls-key", key) as started:
        assert started.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(cert))
        client = http.client.HTTPSConnection(*started.address, context=trusting, timeout=20)
        body = line(START, "ada", "a.example") + line(START, "bob", "a.example")
        answer = ask(client, "POST", "/v1/observations", body)
        client.close()
        assert answer.body.count(b"a.example") == 1
        with started.connect() as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                assert not plain.recv(100).startswith(b"HTTP/1.1 200")
        assert started.end() == 0


def test_a_key_alone_or_a_wrong_one_is_told(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    done = zveil("serve", *FIELDS, *RULE, "--tls-key", key)
    assert done.returncode == 2
    assert b"--tls-key: goes with --tls-cert" in done.stderr
    done = zveil("serve", *FIELDS, *RULE, "--port", "0", "--tls-cert", key, "--tls-key", cert)
    assert done.returncode == 2
    assert b"--tls-cert" in done.stderr
