"""The examples: they name what there is, and call the program as it is."""

import json
import re
from pathlib import Path

from zveil.cli.serve import serve
from zveil.serve.metrics import METRICS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/serve"


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:zveil|process)_[a-z_]+\b", expression))


def known(name: str) -> bool:
    return name in METRICS or re.sub(r"_(bucket|sum|count)$", "", name) in METRICS


def test_every_metric_of_the_dashboard_and_the_alerts_exists() -> None:
    board = json.loads((EXAMPLES / "grafana.json").read_text())
    expressions = [each["expr"] for panel in board["panels"] for each in panel["targets"]]
    expressions += [each["query"] for each in board["templating"]["list"]]
    alerts = (EXAMPLES / "alerts.yml").read_text()
    expressions += re.findall(r"^\s+expr: (.+)$", alerts, re.MULTILINE)
    named = {name for expression in expressions for name in names_in(expression)}
    assert len(named) > 15
    assert not [name for name in named if not known(name)]
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len(set(places)) == len(places)
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)


def test_the_examples_call_the_program_as_it_is() -> None:
    options = {name for option in serve.params for name in option.opts}
    unit = (EXAMPLES / "zveil.service").read_text()
    (command,) = re.findall(r"^ExecStart=(.+)$", unit, re.MULTILINE)
    container = (EXAMPLES / "Containerfile").read_text()
    (entry,) = re.findall(r"^ENTRYPOINT (\[.+?\])$", container, re.MULTILINE | re.DOTALL)
    words = command.split() + json.loads(entry.replace("\\\n", ""))
    said = {word for word in words if word.startswith("--")}
    assert {"--policy", "--tokens", "--state"} <= said <= options
