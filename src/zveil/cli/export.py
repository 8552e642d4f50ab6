"""The figures of a run beside its pipe: what ``--metrics`` asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from zveil.run import Run
    from zveil.serve.exporter import Board
    from zveil.serve.monitor import Figures


def export(address: str, tokens_file: str | None, run: Run) -> Board:
    """Serve the figures of a run from now on; gives what has to look at it between two blocks.

    Raises as `exporting`.
    """
    from zveil.serve.exporter import Board

    board: list[Board] = []
    exporting(address, tokens_file, lambda: board[0].read(), lambda: board.append(Board(run)))
    return board[0]


def exporting(
    address: str,
    tokens_file: str | None,
    read: Callable[[], Figures],
    prepare: Callable[[], None] = lambda: None,
) -> None:
    """Serve figures from now on.

    Parameters
    ----------
    address
        A port, or a host and a port.
    tokens_file
        Who may read.
    read
        Gives the figures.
    prepare
        Is called once it is sure that they are served.

    Raises
    ------
    click.UsageError
        If the address is none, or others could ask there without tokens.
    OSError
        If it cannot be listened on.
    """
    from zveil.serve.exporter import Exporter
    from zveil.serve.listening import listen
    from zveil.serve.settings import Listening
    from zveil.serve.tokens import Tokens, TokensError

    host, port = _parts(address)
    listening = Listening(host=host, port=port)
    tokens = None
    if tokens_file is not None:
        try:
            tokens = Tokens(tokens_file)
        except TokensError as error:
            raise click.UsageError(f"--tokens: {error}") from None
    elif not listening.is_safe:
        raise click.UsageError(
            "--metrics: without --tokens only the loopback is listened on; make a token with: "
            "zveil token new NAME --right read --file FILE"
        )
    opened = listen(listening, "--metrics")
    prepare()
    Exporter(opened, tokens, read)


def _parts(address: str) -> tuple[str, int]:
    """Read an address: a port, or a host and a port.

    >>> _parts("9117"), _parts("127.0.0.1:9117"), _parts("[::1]:0")
    (('127.0.0.1', 9117), ('127.0.0.1', 9117), ('::1', 0))
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535:
        raise click.UsageError("--metrics: expected a port, or ADDRESS:PORT")
    return host, int(port)
