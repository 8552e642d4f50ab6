"""`zveil`: the command that the others hang on."""

import click

from zveil import __version__
from zveil.cli.audit import audit
from zveil.cli.completion import completion
from zveil.cli.demo import demo
from zveil.cli.key import key
from zveil.cli.run import run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="zveil")
def main() -> None:
    """Zero-delay anonymization for event streams.

    An event (time, user, attribute) is released at once if at least z distinct users showed the
    same attribute within the past window, and veiled otherwise.
    """


for command in (run, audit, demo, key, completion):
    main.add_command(command)
