"""Streams made up for trials: Poisson users, seeded, block by block. All of it is synthetic."""

from zveil.simulate.events import Events
from zveil.simulate.presets import isp_day, paper, preset
from zveil.simulate.scenario import Scenario
from zveil.simulate.variations import Flash, Late, UserClass

__all__ = ["Events", "Flash", "Late", "Scenario", "UserClass", "isp_day", "paper", "preset"]
