"""`zveil model`: what z-anonymity is worth in k-anonymity, from parameters."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from zveil.cli.plot import plot
from zveil.cli.population import (
    ASSUMPTIONS,
    as_options,
    population_options,
    power_law,
    window_option,
)

if TYPE_CHECKING:
    from zveil.model import Population

_POINTS = 61


@click.command(short_help="Give the probability of k-anonymity that a z is expected to have.")
@population_options
@window_option
@click.option(
    "--horizon", default=24.0, show_default=True, metavar="NUMBER", type=float,
    help="Windows that an observer can link.",
)  # fmt: skip
@click.option(
    "-z", default=20, show_default=True, type=click.IntRange(1),
    help="Users who must share a value.",
)  # fmt: skip
@click.option(
    "-k", default=2, show_default=True, type=click.IntRange(1),
    help="Users who must share a set of values.",
)  # fmt: skip
@click.option("--plot", "is_plotted", is_flag=True, help="Draw p_k over z.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def model(
    users: int,
    attributes: int,
    rate: float,
    exponent: float,
    window: float,
    horizon: float,
    z: int,
    k: int,
    is_plotted: bool,
    as_json: bool,
) -> None:
    """Give the probability p_k that a user shares the released set of values with k - 1 others.

    Two estimates stand side by side: the formula that the paper prints, and the average over the
    sets that users really hold. Only the second agrees with what happens on a stream. Without
    options, the parameters are those of the paper.

    \b
    zveil model -z 20 -k 2
    zveil model -z 150 --users 5000 --attributes 20 --rate 0.2 --window 2 --horizon 1
    zveil model --plot
    """  # noqa: D301  # click's mark for text that must not be wrapped
    try:
        population = power_law(users, attributes, rate, exponent, window)
        found = quantities(population, z, k, horizon)
        curve = _curve(population, z, k, horizon) if is_plotted else None
    except ValueError as error:
        raise click.UsageError(as_options(str(error))) from None
    if as_json:
        found |= {"rate": rate, "exponent": exponent, "window": window}
        click.echo(json.dumps(found | ({"curve": curve} if curve else {})))
        return
    click.echo(table(found))
    if curve:
        click.echo("\n" + _drawn(curve, k))


def quantities(population: Population, z: int, k: int, horizon: float) -> dict[str, Any]:
    """Give all that the model says about a z, under names that stay."""
    from zveil.model import averaged, p_q, paper, utility

    found = averaged(population, z, k, horizon)
    left = utility(population, z, horizon)
    return {
        "users": population.users,
        "attributes": population.attributes,
        "horizon": horizon,
        "z": z,
        "k": k,
        "p_q": p_q(population, z, horizon),
        "p_k": {
            "paper": paper(population, z, k, horizon),
            "averaged": found.everyone,
            "averaged_visible": found.visible,
        },
        "error": {"averaged": found.error, "averaged_visible": found.visible_error},
        "visible": found.visible_share,
        "released": left.released,
        "attributes_per_user": left.attributes_per_user,
        "distinct_attributes": left.distinct_attributes,
        "assumptions": list(ASSUMPTIONS),
    }


def table(found: dict[str, Any]) -> str:
    """Lay the quantities out for reading."""
    p_k, k = found["p_k"], found["k"]
    who = f"{found['users']:,} users, {found['attributes']:,} attributes"
    return "\n".join(
        [
            f"z = {found['z']:,}, k = {k}, an observer of {found['horizon']:g} windows; {who}",
            "",
            f"probability that a user shares the released set with at least {k - 1} other"
            + ("s" if k != 2 else ""),
            f"  averaged over the sets that users hold   {p_k['averaged']:8.5f}",
            f"  the same among visible users             {p_k['averaged_visible']:8.5f}"
            "   <- what a person is promised",
            f"  the paper's formula                      {p_k['paper']:8.5f}"
            f"   {_verdict(p_k['paper'] - p_k['averaged'])}",
            f"two users have the same set (p^Q)         {found['p_q']:9.5g}",
            "",
            "what is left to use",
            f"  observations released                    {found['released']:8.1%}",
            f"  users with something released (visible)  {found['visible']:8.1%}",
            f"  attributes released, of a user           {found['attributes_per_user']:8.2f}",
            f"  attributes that ever appear              {found['distinct_attributes']:8,.0f}"
            f" of {found['attributes']:,}",
            "",
            "assumed: " + ";\n         ".join(found["assumptions"]),
        ]
    )


def _verdict(excess: float) -> str:
    """Say how far the paper's formula is off."""
    if abs(excess) < 5e-6:
        return "the same here; in general too optimistic"
    if excess < 0:
        return f"lower by {-excess:.5f} here; in general too optimistic"
    return f"too optimistic by {excess:.5f}"


def _curve(population: Population, z: int, k: int, horizon: float) -> dict[str, list[float]]:
    """Work out p_k at z's from 1 on, each about a tenth larger than the last."""
    import numpy as np

    from zveil.model import averaged, paper

    last = min(max(10 * z, 200), population.users)
    zs = np.unique(np.geomspace(1, last, _POINTS).round().astype(int)).tolist()
    visible, formula = [], []
    for done, each in enumerate(zs):
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[2Kp_k over z: {done} of {len(zs)}", err=True, nl=False)
        visible.append(averaged(population, each, k, horizon, error=1e-4).visible)
        formula.append(paper(population, each, k, horizon))
    if sys.stderr.isatty():
        click.echo("\r\x1b[2K", err=True, nl=False)
    return {"z": zs, "averaged_visible": visible, "paper": formula}


def _drawn(curve: dict[str, list[float]], k: int) -> str:
    zs = [int(each) for each in curve["z"]]
    drawing = plot(zs, [(".", curve["paper"]), ("o", curve["averaged_visible"])])
    return f"p_{k} over z    o averaged, visible users    . the paper's formula\n{drawing}"
