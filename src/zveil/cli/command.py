"""`zveil`: the command that the others hang on."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import click

from zveil import __version__
from zveil.cli.audit import audit
from zveil.cli.completion import completion
from zveil.cli.demo import demo
from zveil.cli.figures import figures
from zveil.cli.flink import flink
from zveil.cli.kafka import kafka
from zveil.cli.key import key
from zveil.cli.model import model
from zveil.cli.plan import plan
from zveil.cli.policy import policy
from zveil.cli.rekey import rekey
from zveil.cli.run import run
from zveil.cli.serve import serve
from zveil.cli.simulate import simulate
from zveil.cli.state import state
from zveil.cli.token import token


class Program(click.Group):
    """A group whose commands end well, and without a word, when their reader has seen enough."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the arguments; ``--help`` is printed on the way."""
        with _until_closed():
            return super().make_context(*args, **kwargs)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Give the commands in the order they were added: the one that matters first."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _until_closed():
            return super().invoke(ctx)


@contextlib.contextmanager
def _until_closed() -> Iterator[None]:
    """End with 0 where standard output is closed, as ``head`` does."""
    try:
        yield
    except BrokenPipeError:
        # Standard output leads nowhere from here on, or Python complains about it when it exits.
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.close(nothing)
        raise SystemExit(0) from None


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="zveil")
def main() -> None:
    """Zero-delay anonymization for event streams.

    An event (time, user, attribute) is released at once if at least z distinct users showed the
    same attribute within the past window, and veiled otherwise.
    """


kafka.add_command(rekey)
for command in (
    run, serve, kafka, flink, policy, plan, model, simulate, audit, figures, state, demo, key,
    token, completion,
):  # fmt: skip
    main.add_command(command)
