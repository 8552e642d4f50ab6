"""The options that describe a population of the model, shared by the commands that ask for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from zveil.model import Population

Command = TypeVar("Command", bound=Callable[..., Any])

OBSERVER = "the observer sees the set of values that a user released, without times or counts"
ASSUMPTIONS = ("users are independent and alike", "rates do not change with time", OBSERVER)


def population_options(command: Command) -> Command:
    """Add the options of a population, with the paper's values by default."""
    for option in reversed(
        (
            click.option(
                "--users", default=50_000, show_default=True, type=click.IntRange(1),
                help="Users.",
            ),
            click.option(
                "--attributes", default=5_000, show_default=True,
                type=click.IntRange(1, 10_000_000), help="Attributes that they show.",
            ),
            click.option(
                "--rate", default=0.05, show_default=True, metavar="NUMBER", type=float,
                help="How often a user shows the commonest one in a unit of time.",
            ),
            click.option(
                "--exponent", default=1.0, show_default=True, metavar="NUMBER", type=float,
                help="The one of rank r is shown at rate / r^exponent.",
            ),
        )
    ):  # fmt: skip
        command = option(command)
    return command


window_option = click.option(
    "--window", default=1.0, show_default=True, metavar="NUMBER", type=float,
    help="Length of the window, in units of time.",
)  # fmt: skip


def power_law(
    users: int, attributes: int, rate: float, exponent: float, window: float
) -> Population:
    """Make the population that the options describe."""
    from zveil.model import Population

    return Population.power_law(users, attributes, rate, exponent=exponent, window=window)


def described(population: Population) -> str:
    """Describe a population in a line."""
    return f"{population.users:,} users, {population.attributes:,} attributes"


def as_options(words: str) -> str:
    """Name a parameter as it is typed: ``horizon: ...`` becomes ``--horizon: ...``."""
    name, colon, rest = words.partition(": ")
    dash = "-" if name in {"z", "k"} else "--"
    return f"{dash}{name}{colon}{rest}" if colon and name.isalpha() else words
