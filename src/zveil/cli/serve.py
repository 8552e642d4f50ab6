"""`zveil serve`: events over HTTP."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from zveil.cli.inputs import FAILED, USAGE, duration
from zveil.cli.rule import as_option, policy_of
from zveil.cli.run import meter_of, of_run
from zveil.cli.secrets import Secrets
from zveil.durations import duration_ns, size_bytes
from zveil.memory import ceiling
from zveil.meter import Meter
from zveil.serve.settings import Limits, Listening
from zveil.serve.tokens import Tokens, TokensError
from zveil.state.error import StateError

_LIMITS = Limits()
_RULE = (
    "policy_file", "time_field", "user_field", "attribute_fields", "z", "window", "hold", "z_min",
    "z_max", "noise", "swap", "time_format", "only", "except_", "round", "keep", "empty",
    "key_file", "pseudonym", "rotate",
    "keep_keys", "raw_users", "lateness", "max_future", "memory", "max_attributes", "id",
    "state_folder", "state_every", "state_reset", "threads", "max_line", "measures", "meter_memory",
)  # fmt: skip
_MISSING = (
    "the service needs packages that are not installed; add them with: pip install 'zveil[serve]'"
)


@click.command(short_help="Serve: events over HTTP in, what is safe out.")
@of_run(_RULE)
@click.option(
    "--host", default=Listening.host, show_default=True, metavar="ADDRESS",
    help="Listen there; another than the loopback only with --tokens.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(0, 65535), default=Listening.port, show_default=True,
    metavar="PORT", envvar="ZVEIL_PORT", help="Listen there; 0 for any that is free.",
)  # fmt: skip
@click.option(
    "--tokens", "tokens_file", metavar="FILE", type=click.Path(dir_okay=False),
    help="Answer only those with a token of this file; see `zveil token`.",
)  # fmt: skip
@click.option(
    "--tls-cert", metavar="FILE", type=click.Path(dir_okay=False, exists=True),
    help="Speak TLS with this certificate (PEM, with its chain).",
)  # fmt: skip
@click.option(
    "--tls-key", metavar="FILE", type=click.Path(dir_okay=False, exists=True),
    help="The key of the certificate, if it is in a file of its own.",
)  # fmt: skip
@click.option(
    "--max-body", default="1GiB", show_default=True, metavar="SIZE",
    help="Refuse requests with a larger body.",
)  # fmt: skip
@click.option(
    "--max-requests", type=click.IntRange(1), default=_LIMITS.max_requests, show_default=True,
    metavar="N", help="Refuse requests while so many run.",
)  # fmt: skip
@click.option(
    "--max-connections", type=click.IntRange(1), default=_LIMITS.max_connections,
    show_default=True, metavar="N", help="Refuse connections while so many are open.",
)  # fmt: skip
@click.option(
    "--head-timeout", default="10s", show_default=True, metavar="DURATION",
    help="Cut off whoever takes longer to say what they want.",
)  # fmt: skip
@click.option(
    "--idle-timeout", default="60s", show_default=True, metavar="DURATION",
    help="Cut off whoever pauses for so long while sending, or does not read an answer.",
)  # fmt: skip
@click.option(
    "--request-timeout", default="1h", show_default=True, metavar="DURATION",
    help="Cut off a request that takes longer.",
)  # fmt: skip
@click.option(
    "--shutdown-timeout", default="10s", show_default=True, metavar="DURATION",
    help="How long running requests may go on when the service is told to end.",
)  # fmt: skip
@click.option(
    "--no-console", is_flag=True,
    help="Do without the pages in the browser: live figures, planning, audits.",
)  # fmt: skip
@click.option(
    "--released", metavar="DIR", type=click.Path(file_okay=False, exists=True),
    help="Offer the released files in this folder for audits in the console.",
)  # fmt: skip
@click.option(
    "--upload", default="256MiB", show_default=True, metavar="SIZE",
    help="Refuse larger files that a browser sends to the console.",
)  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="Do not log requests.")
def serve(
    policy_file: str | None,
    time_field: str | None,
    user_field: str | None,
    attribute_fields: tuple[str, ...],
    key_file: str | None,
    state_folder: str | None,
    state_every: str,
    state_reset: bool,
    threads: int,
    max_line: str,
    measures: bool,
    meter_memory: str,
    host: str,
    port: int,
    tokens_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    max_body: str,
    max_requests: int,
    max_connections: int,
    head_timeout: str,
    idle_timeout: str,
    request_timeout: str,
    shutdown_timeout: str,
    no_console: bool,
    released: str | None,
    upload: str,
    quiet: bool,
    **said: Any,
) -> None:
    """Take events over HTTP and answer with those that enough users share.

    Whatever is posted to /v1/observations, on any connection, is one stream: NDJSON is answered as
    it arrives, a single event of JSON at once, Arrow batch by batch. /metrics has figures for
    Prometheus, /openapi.json describes it all. In a browser, / is the console.

    Without --tokens only this machine is answered. Options with a * are the short form of a policy
    file, as for `zveil run`. The log is lines of JSON on standard error.

    \b
    zveil serve --time ts --user uid --attribute host -z 20 --window 1h
    zveil serve --policy zveil.toml --tokens tokens --host 0.0.0.0 \\
        --tls-cert cert.pem --tls-key key.pem
    curl -X POST -T events.ndjson -H 'Content-Type: application/x-ndjson' \\
        http://127.0.0.1:8117/v1/observations

    \b
    Exit codes:
      0  told to end, and did: what was accepted is answered
      1  it could not listen there, or saving failed
      2  wrong usage
    """  # noqa: D301  # click's mark for text that must not be wrapped
    try:
        fields = {"time": time_field, "user": user_field, "attributes": attribute_fields}
        if policy_file is None and said["z"] is None and said["hold"] is None:
            raise click.UsageError(
                "-z: say how many users must share a value, or what --hold is to hold"
            )
        policy = policy_of(policy_file, said | fields)
        limits = Limits(
            max_body=size_bytes(max_body, "max-body"),
            max_requests=max_requests,
            max_connections=max_connections,
            head_s=_seconds(head_timeout, "head-timeout"),
            idle_s=_seconds(idle_timeout, "idle-timeout"),
            request_s=_seconds(request_timeout, "request-timeout"),
            shutdown_s=_seconds(shutdown_timeout, "shutdown-timeout"),
        )
        listening = Listening(host=host, port=port, tls_cert=tls_cert, tls_key=tls_key)
        _check_tls(listening)
        tokens = _tokens(tokens_file, listening)
        if state_reset and state_folder is None:
            raise click.UsageError("--state-reset: say which state is to start anew with --state")
        kept = None
        if state_folder is not None:
            every_s = duration_ns(duration(state_every), "state-every") / 1e9
            kept = _Kept(state_folder, every_s, state_reset)
        meter = meter_of(policy, meter_memory) if measures or policy.hold else None
        settings = _Settings(threads, size_bytes(max_line, "max-line"), limits, listening, meter)
        pages = None if no_console else _Pages(released, size_bytes(upload, "upload"))
        _go(Secrets(policy, key_file), kept, settings, tokens, pages, quiet=quiet)
    except StateError as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(USAGE) from None
    except ValueError as error:
        raise click.UsageError(as_option(error)) from None
    except OSError as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(FAILED) from None


class _Kept(NamedTuple):
    """Where the state is kept, how often it is saved, and whether it starts anew."""

    folder: str
    every_s: float
    reset: bool


class _Settings(NamedTuple):
    """How it is served."""

    threads: int
    max_line: int
    limits: Limits
    listening: Listening
    meter: Meter | None


class _Pages(NamedTuple):
    """What the console offers, and takes."""

    released: str | None
    upload: int


def _go(
    secrets: Secrets,
    kept: _Kept | None,
    settings: _Settings,
    tokens: Tokens | None,
    pages: _Pages | None,
    *,
    quiet: bool,
) -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
        from httptools import HttpRequestParser  # noqa: F401
    except ImportError:
        raise click.UsageError(_MISSING) from None
    from zveil.serve import server
    from zveil.serve.app import Service, app
    from zveil.serve.engine import Engine
    from zveil.serve.listening import listen
    from zveil.serve.log import Log

    log, policy = Log(requests=not quiet), secrets.policy
    keeping = None
    if kept is not None:
        from zveil.serve.keeping import Keeping
        from zveil.state.store import Store

        store = Store(
            kept.folder,
            key=secrets.given(),
            policy=policy,
            interval=kept.every_s,
            report=lambda words: log.say("state", why=words),
            reset=kept.reset,
        )
        keeping = Keeping(store, policy, threads=settings.threads)
        log.say("state", resumed=keeping.is_resumed, age=keeping.age)
        if kept.reset:
            store.forget()
    else:
        store = None
    # In this order: opening the keyring takes the key out of the environment.
    secret = secrets.gate_key(store)
    engine = Engine(
        policy,
        keyring=secrets.keyring(store),
        gate_key=secret,
        threads=settings.threads,
        max_line=settings.max_line,
        memory=ceiling(),
        ids_key=None if store is None else store.secret("ids"),
        keeping=keeping,
        meter=settings.meter,
        report=lambda words: log.say("tuning", why=words),
    )
    listening = settings.listening
    service = Service(engine=engine, tokens=tokens, limits=settings.limits, log=log)
    made = app(service)
    if pages is not None:
        from zveil.console import mount

        mount(
            made,
            monitor=engine.monitor,
            policy=policy,
            tokens=tokens,
            listen=engine.listen,
            released=pages.released,
            upload=pages.upload,
        )
    opened = listen(listening)
    if not listening.is_safe and listening.tls_cert is None:
        log.say("warning", why="without --tls-cert tokens and events go unencrypted")
    try:
        server.serve(made, service, opened, listening)
    finally:
        engine.close()


def _check_tls(listening: Listening) -> None:
    """Say at once what is wrong with a certificate."""
    if listening.tls_cert is None:
        if listening.tls_key is not None:
            raise click.UsageError("--tls-key: goes with --tls-cert")
        return
    import ssl

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # A key that is locked is not asked about: nobody may be there to answer.
        context.load_cert_chain(listening.tls_cert, listening.tls_key, password=lambda: b"")
    except (ssl.SSLError, OSError, ValueError):
        raise click.UsageError(
            "--tls-cert, --tls-key: expected a certificate and its key without a password, in PEM"
        ) from None


def _tokens(file: str | None, listening: Listening) -> Tokens | None:
    if file is None:
        if not listening.is_safe:
            raise click.UsageError(
                "--host: without --tokens only the loopback is listened on; make a token with: "
                "zveil token new NAME --right write --right read --file FILE"
            )
        return None
    try:
        return Tokens(file)
    except TokensError as error:
        raise click.UsageError(f"--tokens: {error}") from None


def _seconds(text: str, name: str) -> float:
    try:
        found = duration_ns(text, name) / 1e9
    except ValueError as error:
        raise click.UsageError(f"--{error}") from None
    if found <= 0:
        raise click.UsageError(f"--{name}: expected more than nothing")
    return found
