"""`zveil plan`: the z, and the period of changing user ids, for a wanted k."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from zveil.cli.population import (
    ASSUMPTIONS,
    as_options,
    described,
    population_options,
    power_law,
)

if TYPE_CHECKING:
    from zveil.model import Option, Plan, Population
    from zveil.model.parameters import Count


@click.command(short_help="Choose z, and when user ids change, for a wanted k-anonymity.")
@click.option(
    "-k", default=2, show_default=True, type=click.IntRange(2),
    help="Users who must share a set of values.",
)  # fmt: skip
@click.option(
    "--probability", default=0.95, show_default=True, metavar="NUMBER", type=float,
    help="Probability wanted that a user is one of at least k.",
)  # fmt: skip
@click.option(
    "--horizon", default=24.0, show_default=True, metavar="NUMBER", type=float,
    help="Windows that an observer sees.",
)  # fmt: skip
@click.option(
    "--count", type=click.Choice(["visible", "all"]), default="visible", show_default=True,
    help="Whose probability: of users with something released, or of all.",
)  # fmt: skip
@population_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def plan(
    k: int,
    probability: float,
    horizon: float,
    count: Count,
    users: int,
    attributes: int,
    rate: float,
    exponent: float,
    window: float,
    as_json: bool,
) -> None:
    """Find the smallest z for which a user is one of at least K with the wanted probability.

    Beside it stands what changing user ids sooner would allow: an observer then links fewer
    windows, so a smaller z does, and more is released. Without options, the parameters are those of
    the paper.

    \b
    zveil plan -k 2 --probability 0.95 --horizon 24
    zveil plan -k 5 --users 200000 --horizon 168 --json
    """  # noqa: D301  # click's mark for text that must not be wrapped
    try:
        population = power_law(users, attributes, rate, exponent, window)
        found = planned(population, k, probability, horizon, count)
    except ValueError as error:
        raise click.UsageError(as_options(str(error))) from None
    if as_json:
        click.echo(json.dumps(as_dict(found)))
    else:
        click.echo(f"{described(population)}, shown at {rate:g} / rank^{exponent:g}")
        click.echo(report(found))


def planned(
    population: Population, k: int, probability: float, horizon: float, count: Count
) -> Plan:
    """Plan for any population, with a line of progress for a person who watches."""
    from zveil.model import plan as make

    def progress(done: int, of: int) -> None:
        click.echo(f"\r\x1b[2Kplanning: {done} of {of} periods", err=True, nl=False)

    is_watched = sys.stderr.isatty()
    try:
        return make(
            population,
            k=k,
            probability=probability,
            horizon=horizon,
            count=count,
            progress=progress if is_watched else None,
        )
    finally:
        if is_watched:
            click.echo("\r\x1b[2K", err=True, nl=False)


def as_dict(found: Plan) -> dict[str, Any]:
    """Give a plan under names that stay."""
    kept = found.kept
    return {
        "k": found.k,
        "probability": found.probability,
        "count": found.count,
        "horizon": found.horizon,
        "z": kept.z if kept else None,
        "p_k": kept.p_k if kept else None,
        "released": kept.released if kept else None,
        "options": [
            {
                "rotate_every": option.rotate_every,
                "z": option.z,
                "p_k": option.p_k,
                "released": option.released,
            }
            for option in found.options
        ],
        "assumptions": list(ASSUMPTIONS),
    }


def report(found: Plan) -> str:
    """Lay a plan out for reading."""
    who = "visible users (with something released)" if found.count == "visible" else "all users"
    wanted = (
        f"wanted: k = {found.k} with probability {found.probability:g} among {who}, "
        f"against an observer of {found.horizon:g} windows"
    )
    rows = [f"{'ids change every':>18}  {'z':>7}  {f'p_{found.k}':>8}  {'released':>8}"]
    rows += [
        f"{_windows(option.rotate_every):>18}  {option.z:>7,}  {option.p_k:>8.5f}  "
        f"{option.released:>8.1%}"
        for option in found.options
    ]
    return "\n".join(
        [
            wanted,
            "",
            _kept(found),
            "",
            *rows,
            "",
            _advice(found),
            "assumed: " + ";\n         ".join(ASSUMPTIONS),
        ]
    )


def _kept(found: Plan) -> str:
    if found.kept is None:
        return f"with ids that stay, no z reaches it over {found.horizon:g} windows"
    return (
        f"with ids that stay: z = {found.kept.z:,}, "
        f"p_{found.k} = {found.kept.p_k:.5f}, {found.kept.released:.1%} released"
    )


def _advice(found: Plan) -> str:
    best: Option = found.options[0]
    if best == found.kept:
        return f"advice: z = {best.z:,}, and ids may stay."
    return (
        f"advice: change user ids every {_windows(best.rotate_every)} and take z = {best.z:,}; "
        "if users must be linked for longer, take the row of that length."
    )


def _windows(count: float) -> str:
    return "window" if count == 1 else f"{count:g} windows"
