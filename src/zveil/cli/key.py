"""`zveil key`: a secret for pseudonyms that stay the same from run to run."""

import click

from zveil.keys import write_key


@click.command(short_help="Make a secret key for pseudonyms.")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option(
    "--chain", is_flag=True,
    help="For `zveil run --rotate`: a key that moves on, so that past pseudonyms stay apart.",
)  # fmt: skip
def key(file: str, chain: bool) -> None:
    """Write a new random key to FILE, readable by you alone.

    With `zveil run --key-file FILE` a user has the same pseudonym in every run. Whoever has the key
    can find out whose pseudonym it is by trying ids: keep it where the data does not go.

    With --chain the key is the first of a chain: `zveil run --rotate` makes each from the one
    before and writes it to FILE, and the old one is gone.
    """
    try:
        write_key(file, chain=chain)
    except FileExistsError:
        raise click.UsageError(f"{file}: is there already; a key is never overwritten") from None
    except OSError as error:
        raise click.UsageError(f"{file}: {(error.strerror or '').lower()}") from None
