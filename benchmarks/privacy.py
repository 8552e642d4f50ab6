"""Figures about privacy: how long the averaged estimate and the audit take."""

from __future__ import annotations

import gc
import math
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter

import files
import numpy as np
import peers
import pipeline
from report import Figures, Ratio, Result, at_most
from text import ZVEIL
from workloads import Scale, Stream, for_text

from zveil.model import Population, averaged

WITHIN = at_most(1)
ONE_MS = 200.0
SWEEP_S = 5.0

# The day that the paper evaluates: the commonest site is seen by 34 of 100 users in an hour.
USERS = 9_670
COMMONEST = 0.34
HORIZON = 24
FEWEST, MOST = 1, 400  # z
ZS = (1, 20, 200)


def estimator(scale: Scale) -> list[Result]:
    """Time the averaged estimate of p_k at one z, and a sweep of many."""
    attributes = scale.estimator_attributes
    population = Population.power_law(USERS, attributes, rate=-math.log1p(-COMMONEST))
    rounds = [{z: _seconds(population, [z]) for z in ZS} for _ in range(scale.rounds)]
    # Of each z the fastest round, because noise only adds; of these the slowest z.
    slowest = max(min(seconds[z] for seconds in rounds) for z in ZS)
    zs = np.linspace(FEWEST, MOST, scale.estimator_sweep).round().astype(int).tolist()
    sweep = min(_seconds(population, zs) for _ in range(scale.rounds))
    case = f"A={attributes} U={USERS} N={HORIZON}"
    one = f"{case}, slowest of z={','.join(map(str, ZS))}"
    many = f"{case}, {len(zs)} of z={FEWEST}..{MOST}"
    return [
        Ratio("averaged estimator", one, "200 ms", slowest * 1e3, ONE_MS, WITHIN, "ms"),
        Ratio("sweep of the estimator", many, "5 s", sweep, SWEEP_S, WITHIN, "s"),
    ]


def audit(scale: Scale) -> list[Result]:
    """Time `zveil audit` on files of a released stream, start-up and reading included."""
    stream = for_text(scale).prefix(scale.audit_events)
    released = _released(stream, scale.z)
    with tempfile.TemporaryDirectory() as folder:
        parquet, csv = Path(folder) / "released.parquet", Path(folder) / "released.csv"
        files.write_parquet(released, parquet)
        files.write_csv(released, csv)
        contestants = {
            "Parquet": partial(_audited, parquet, len(released)),
            "CSV": partial(_audited, csv, len(released)),
        }
        best = peers.best_of(scale.rounds, contestants)
    if best["Parquet"].facts != best["CSV"].facts:
        raise peers.DisagreementError("audit: Parquet and CSV give other figures")
    case = f"{len(released):,} released events, {stream.case}"
    rates = {name: run.observations / run.seconds for name, run in best.items()}
    return [Figures("audit", case, rates, "events/s")]


def _seconds(population: Population, zs: list[int]) -> float:
    gc.collect()
    gc.disable()
    start = perf_counter()
    for z in zs:
        averaged(population, z, 2, HORIZON)
    seconds = perf_counter() - start
    gc.enable()
    return seconds


def _released(stream: Stream, z: int) -> Stream:
    mask = peers.gate(stream, z).released
    return replace(
        stream,
        times=stream.times[mask],
        users=stream.users[mask],
        attributes=stream.attributes[mask],
    )


def _audited(file: Path, events: int) -> peers.Outcome:
    command = [ZVEIL, "audit", file, "--time", "ts", "--user", "uid", "--attribute", "host"]
    passage = pipeline.flow([*command, "--json"], digest=True)
    return peers.Outcome(passage.seconds, events, facts={"answer": int(passage.digest, 16)})
