"""The probability model: what z-anonymity is worth in k-anonymity, and what it costs in data."""

from zveil.model.anonymity import Anonymity, averaged, p_k, paper
from zveil.model.check import Check, TracePlan, plan_trace
from zveil.model.classes import ClassAnonymity, Classes, class_p_k, class_p_o
from zveil.model.measurement import Measurement, measure
from zveil.model.plan import Option, Plan, Unreachable, plan, smallest_z
from zveil.model.population import Population
from zveil.model.quantities import log_p_q, log_p_y, p_n, p_o, p_q, p_x, p_y
from zveil.model.trace import Trace, from_columns
from zveil.model.utility import Utility, released, utility

__all__ = [
    "Anonymity",
    "Check",
    "ClassAnonymity",
    "Classes",
    "Measurement",
    "Option",
    "Plan",
    "Population",
    "Trace",
    "TracePlan",
    "Unreachable",
    "Utility",
    "averaged",
    "class_p_k",
    "class_p_o",
    "from_columns",
    "log_p_q",
    "log_p_y",
    "measure",
    "p_k",
    "p_n",
    "p_o",
    "p_q",
    "p_x",
    "p_y",
    "paper",
    "plan",
    "plan_trace",
    "released",
    "smallest_z",
    "utility",
]
