"""The page *Plan*: the trade-off to play with, and the policy that comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from nicegui import background_tasks, ui

from zveil.console.charts import GREY, ONE, THREE, TWO, axis, frame, line, mark, rule
from zveil.console.choice import (
    HORIZONS,
    KS,
    PROBABILITIES,
    ROTATIONS,
    WINDOWS,
    Z_VALUES,
    Choice,
    beside,
    lead,
    nearest,
)
from zveil.console.proposal import Names, namer, proposal
from zveil.console.shell import Slider, box, chart, field, rich, words
from zveil.console.source import Source
from zveil.console.view import View
from zveil.console.ways import Ways
from zveil.console.wording import plural
from zveil.console.worker import WorkError
from zveil.policy import PolicyError

_SETTLES_S = 0.06


class PlanPage:
    """The page of one browser."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._choice = Choice.of(view.policy)
        self._names = Names.of(view.policy)
        self._drawn: object = None
        self._is_working = False
        self._is_stale = True
        with box("div", "head"):
            words("h1", "Plan")
            words("p", "What a z is worth in k-anonymity, and what it costs in data.", "quiet")
        with box("div", "grid split"):
            self._outcome()
            with box("div", "grid knobs"):
                self._knobs()
                self._source = Source(view, self._names, self._choice, self._changed)
            with box("div", "grid rest"):
                self._charts()
                self._ways = Ways(view, self._choice, self._source, self._take)
                self._policy_card()
        self._write_policy()
        ui.context.client.on_delete(self._ways.close)
        ui.context.client.on_delete(self._source.close)
        ui.timer(0.05, self._changed, once=True)

    def _knobs(self) -> None:
        choice = self._choice
        zs = Slider(
            name="z",
            label="z",
            values=Z_VALUES,
            texts=[f"{z:,}" for z in Z_VALUES],
            hint="Users who must share a value within the window before it leaves.",
        )
        self._z_slider = zs
        windows = [text for text, _ in WINDOWS]
        self._rotate_slider = Slider(
            name="rotate",
            label="Rotation",
            values=ROTATIONS,
            texts=["ids stay" if n is None else f"every {plural(n, 'window')}" for n in ROTATIONS],
            hint="After how long user ids change, so that nobody can link more.",
        )
        with box("section", "card"):
            words("h2", "What you choose")
            zs.show(nearest(choice.z, Z_VALUES), self._setter("z"), f"{choice.z:,}")
            Slider(
                name="window",
                label="Window",
                values=windows,
                texts=windows,
                hint="How long a user counts for a value.",
            ).show(choice.window, self._setter("window"))
            self._rotate_slider.show(choice.rotate, self._setter("rotate"))
        with box("section", "card"):
            words("h2", "Against whom")
            Slider(
                name="horizon",
                label="Horizon",
                values=HORIZONS,
                texts=[plural(n, "window") for n in HORIZONS],
                hint="Windows that an observer watches.",
            ).show(choice.horizon, self._setter("horizon"))
            Slider(
                name="k",
                label="k",
                values=KS,
                texts=[str(k) for k in KS],
                hint="Users who must look alike in all that was released of them.",
            ).show(choice.k, self._setter("k"))
            Slider(
                name="probability",
                label="Wanted",
                values=PROBABILITIES,
                texts=[f"{share:.3g} %" for share in PROBABILITIES],
                hint="Share of visible users who should be one of k.",
            ).show(choice.probability, self._setter("probability"))

    def _setter(self, name: str) -> Callable[[Any], None]:
        def set_(value: Any) -> None:
            setattr(self._choice, name, value)
            self._write_policy()
            self._changed()

        return set_

    def _outcome(self) -> None:
        live = {"aria-live": "polite", "aria-label": "Outcome"}
        with box("section", "card lead-card", **live):
            self._lead = rich('<span class="busy">working it out</span>', "lead")
            self._problem = words("p", "", "problem", role="alert")
        self._problem.set_visibility(False)

    def _charts(self) -> None:
        def zs() -> dict[str, Any]:
            return axis("log", unit="zveil.short", name="z", min=1)

        percents = axis("value", unit="zveil.percent", min=0, max=100)
        with box("div", "grid pair"):
            with box("section", "card"):
                words("h2", "Visible users in a crowd of k")
                self._anonymity = chart(
                    frame(
                        x=zs(),
                        y=percents,
                        unit="zveil.percent",
                        series=[
                            line("averaged over what users hold", ONE),
                            line("the paper's formula: too optimistic", GREY, dashes="dashed"),
                            mark("your choice", TWO),
                        ],
                    ),
                    "Share of visible users who are one of k, by z: averaged, and by the paper",
                    "tall",
                )
                self._paper = words("p", "", "quiet small")
            with box("section", "card"):
                words("h2", "What is left of the data")
                self._utility = chart(
                    frame(
                        x=zs(),
                        y=percents,
                        unit="zveil.percent",
                        series=[
                            line("observations released", ONE),
                            line("values that ever appear", THREE, dashes="dashed"),
                            mark("your choice", TWO),
                        ],
                    ),
                    "Share of observations released and of values that ever appear, by z",
                    "tall",
                )

    def _take(self, z: int, rotate: int | None) -> None:
        self._choice.z, self._choice.rotate = z, rotate
        self._z_slider.move(nearest(z, Z_VALUES), f"{z:,}")
        self._rotate_slider.move(nearest(rotate, ROTATIONS))
        self._write_policy()
        self._changed()

    def _policy_card(self) -> None:
        with box("section", "card"):
            words("h2", "The policy")
            names, named = self._names, namer(self._names, self._rename)
            with box("div", "fields"):
                field("policy-time", "Field of the time", names.time, named("time"))
                field("policy-user", "Field of the user", names.user, named("user"))
                every = ", ".join(names.attributes)
                field("policy-attributes", "Attributes", every, named("attributes"))
            self._policy_problem = words("p", "", "problem", role="alert")
            with box("pre", tabindex=0, **{"aria-label": "The policy, as TOML"}):
                self._policy = words("code", "", id="policy")
            with box("div", "row"):
                words("button", "Copy", "main", type="button", **{"data-copies": "policy"})
                words("span", "Save it as zveil.toml, then: zveil policy check zveil.toml",
                      "quiet small")  # fmt: skip

    def _rename(self, names: Names) -> None:
        self._names = names
        self._write_policy()

    def _write_policy(self) -> None:
        choice = self._choice
        try:
            text = proposal(
                self._names,
                z=choice.z,
                window=choice.window,
                rotate=choice.rotate,
                running=self._view.policy is not None,
            )
        except PolicyError as error:
            self._policy_problem.set_text(str(error))
            self._policy_problem.set_visibility(True)
            return
        self._policy_problem.set_visibility(False)
        self._policy.set_text(text)

    def _changed(self) -> None:
        """Have it worked out anew; while that goes on, only the last change counts."""
        self._is_stale = True
        if not self._is_working:
            self._is_working = True
            background_tasks.create(self._work())

    async def _work(self) -> None:
        try:
            while self._is_stale:
                await asyncio.sleep(_SETTLES_S)
                self._is_stale = False
                await self._work_out()
        finally:
            self._is_working = False

    async def _work_out(self) -> None:
        self._ways.check()
        given, worker = self._choice.given(), self._source.worker or self._view.curves
        try:
            shape = self._choice.shape(), worker
            if shape != self._drawn:
                self._draw(await worker.ask("curves", given))
                self._drawn = shape
            self._show(await worker.ask("point", given), given)
            self._problem.set_visibility(False)
        except WorkError as error:
            self._problem.set_text(str(error))
            self._problem.set_visibility(True)

    def _draw(self, found: dict[str, Any]) -> None:
        zs, every = found["z"], max(found["attributes"], 1)

        def percents(values: list[float | None], of: float = 1.0) -> list[list[float]]:
            known = ((z, each) for z, each in zip(zs, values, strict=True) if each is not None)
            return [[z, round(100 * each / of, 4)] for z, each in known]

        series = self._anonymity.options["series"]
        series[0]["data"], series[1]["data"] = percents(found["visible"]), percents(found["paper"])
        series = self._utility.options["series"]
        series[0]["data"] = percents(found["released"])
        series[1]["data"] = percents(found["distinct"], every)
        for drawn in (self._anonymity, self._utility):
            drawn.options["xAxis"]["max"] = zs[-1]

    def _show(self, found: dict[str, Any], given: dict[str, Any]) -> None:
        z, wanted = found["z"], 100 * given["probability"]
        series = self._anonymity.options["series"]
        series[0]["markLine"] = rule(wanted, f"wanted: {wanted:.3g} %")
        series[2]["data"] = [[z, round(100 * found["visible"], 3)]]
        self._utility.options["series"][2]["data"] = [[z, round(100 * found["released"], 3)]]
        self._anonymity.update()
        self._utility.update()
        self._lead.set_content(lead(found, self._choice))
        self._paper.set_text(beside(found))
