"""`zveil token`: who may use the service."""

import click

from zveil.serve.tokens import RIGHTS, TokensError, add_token


@click.group(short_help="Make tokens for the service.")
def token() -> None:
    """Make tokens for `zveil serve` and `zveil run --metrics`."""


@token.command(short_help="Make a token.")
@click.argument("name")
@click.option(
    "--file", "file", required=True, metavar="FILE", type=click.Path(dir_okay=False),
    help="Add its hash to this file, for --tokens; it is made if it is not there.",
)  # fmt: skip
@click.option(
    "--right", "rights", multiple=True, required=True, type=click.Choice(RIGHTS),
    help="What it may do; repeat it for several.",
)  # fmt: skip
def new(name: str, file: str, rights: tuple[str, ...]) -> None:
    """Make a token, print it, and add its hash to FILE.

    It is printed this once and kept nowhere. NAME tells it from others, in logs too. A running
    service reads its file again on SIGHUP; without a line of its own a token is worth nothing.

    \b
    Rights:
      write  hand events in; without read, the answer is how many arrived
      read   get what is released, and see the figures
      admin  forget a user, set z, save the state

    \b
    zveil token new collector --right write --right read --file tokens
    """  # noqa: D301  # click's mark for text that must not be wrapped
    try:
        click.echo(add_token(file, name, rights))
    except TokensError as error:
        raise click.UsageError(str(error)) from None
