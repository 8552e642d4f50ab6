"""`zveil`: the command that the others hang on."""

import contextlib
import os
from collections.abc import Iterable, Iterator, MutableMapping
from importlib import import_module
from typing import Any

import click

from zveil import __version__


class Commands(MutableMapping[str, click.Command]):
    """Commands by name, each in a module of that name, which is loaded when the command is called.

    So nobody waits for what the others need.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._known: dict[str, click.Command | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> click.Command:
        found = self._known[name]
        if found is None:
            found = getattr(import_module(f"zveil.cli.{name}"), name)
            self._known[name] = found
        return found

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._known[name] = command

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class Program(click.Group):
    """A group whose commands end well, and without a word, when their reader has seen enough."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the arguments; ``--help`` is printed on the way."""
        with _until_closed():
            return super().make_context(*args, **kwargs)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Give the commands in the order they were named: the one that matters first."""
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


_COMMANDS = Commands((
    "run", "serve", "kafka", "flink", "policy", "plan", "model", "simulate", "audit", "figures",
    "state", "demo", "key", "token", "completion",
))  # fmt: skip


@click.group(
    cls=Program, commands=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="zveil")
def main() -> None:
    """Zero-delay anonymization for event streams.

    An event (time, user, attribute) is released at once if at least z distinct users showed the
    same attribute within the past window, and veiled otherwise.
    """
