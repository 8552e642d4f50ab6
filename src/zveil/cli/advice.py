"""A plan laid out: for people as text, for programs under names that stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zveil.cli.population import ASSUMPTIONS, OBSERVER

if TYPE_CHECKING:
    from zveil.model import Measurement, Option, Plan, Trace, TracePlan

Rows = list[list[str]]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What was read of a trace, and what had to be left out."""

    trace: Trace
    window: str
    bad: int
    incomplete: int
    future: int

    def left_out(self) -> list[str]:
        """Say what was left out, and how much; never what it was."""
        counts = (
            (self.bad, "bad lines"),
            (self.incomplete, "values without a time or a user"),
            (self.future, "values from more than a day ahead"),
        )
        return [f"{words}, left out: {count:,}" for count, words in counts if count]


def as_dict(found: Plan | TracePlan) -> dict[str, Any]:
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
        "options": [_option_dict(option) for option in found.options],
        "assumptions": list(_assumptions(found)),
    }


def measured_dict(found: TracePlan, reading: Reading) -> dict[str, Any]:
    """Give what was measured on a trace, under names that stay."""
    kept = found.kept_measured
    trace = reading.trace
    return {
        "z": kept.z if kept else None,
        "p_k": kept.p_k if kept else None,
        "released": kept.released if kept else None,
        "model_holds": found.holds,
        "windows": found.windows,
        "warm_up": found.warm_up,
        "window_s": trace.window_ns / 1e9,
        "observations": len(trace),
        "users": trace.users,
        "attributes": trace.attributes,
        "bad": reading.bad,
        "incomplete": reading.incomplete,
        "future": reading.future,
        "options": [_measurement_dict(each) for each in found.measured],
        "model": [
            _option_dict(check.option)
            | {"measured": _measurement_dict(check.measured), "falls_short": check.falls_short}
            for check in found.checks
            if check.option is not None and check.measured is not None
        ],
    }


def report(found: Plan) -> str:
    """Lay a plan out for reading."""
    rows = [["ids change every", "z", f"p_{found.k}", "released"]]
    rows += [_option_row(option) for option in found.options]
    return "\n".join(
        [wanted(found), "", _kept(found), "", _table(rows), "", advice(found), _assumed(found)]
    )


def trace_report(found: TracePlan, reading: Reading) -> str:
    """Lay a plan for the users of a trace out for reading."""
    trace = reading.trace
    windows = "1 window" if trace.windows == 1 else f"{trace.windows:,} windows"
    text = [
        f"{len(trace):,} observations of {trace.users:,} users, {trace.attributes:,} attributes; "
        f"{windows} of {reading.window}",
        wanted(found),
        "",
        _kept(found),
        "",
    ]
    compared = _compared(found)
    if len(compared) > 1:
        text += ["the model, and what the real gate came to on the trace:", _table(compared), ""]
    if not found.holds:
        text += [*_disagreement(found, trace.users), ""]
    text += _checked(found, reading)
    return "\n".join([*text, advice(found), _assumed(found)])


def wanted(found: Plan | TracePlan) -> str:
    """Say what was asked for."""
    who = "visible users (with something released)" if found.count == "visible" else "all users"
    return (
        f"wanted: k = {found.k} with probability {found.probability:g} among {who}, "
        f"against an observer of {found.horizon:g} windows"
    )


def advice(found: Plan | TracePlan) -> str:
    """Say what to do, in a line."""
    if not found.options:
        return "advice: take a smaller k, probability or horizon, or a longer window."
    best: Option = found.options[0]
    if best == found.kept:
        return f"advice: z = {best.z:,}, and ids may stay."
    return (
        f"advice: change user ids every {_windows(best.rotate_every)} and take z = {best.z:,}; "
        "if users must be linked for longer, take the row of that length."
    )


def _compared(found: TracePlan) -> Rows:
    p_k = f"p_{found.k}"
    rows = [["ids change every", "z", f"{p_k} model", "measured", "released model", "measured", ""]]
    for check in found.checks:
        option, measured = check.option, check.measured
        if option is None or measured is None:
            continue
        remarks = ["falls short"] * check.falls_short
        if measured.windows < option.rotate_every:
            remarks.append(f"measured over {_windows(measured.windows)}")
        rows.append(
            [
                _windows(option.rotate_every),
                f"{option.z:,}",
                f"{option.p_k:.5f}",
                _p_k(measured),
                f"{option.released:.1%}",
                f"{measured.released:.1%}",
                ", ".join(remarks),
            ]
        )
    return rows


def _disagreement(found: TracePlan, users: int) -> list[str]:
    """Say how the trace speaks against the model, and what it has to offer."""
    short = [
        (check.option, check.measured)
        for check in found.checks
        if check.falls_short and check.option is not None and check.measured is not None
    ]
    if short:
        option, measured = min(short, key=lambda pair: pair[1].p_k or 0.0)
        share = f"p_{found.k} = {measured.p_k:.5f}"
        if measured.p_k is None:
            share = "nobody has anything released"
        text = [
            f"the trace says: {share} at z = {option.z:,} over {_windows(measured.windows)}; "
            f"the model said: {option.p_k:.5f}."
        ]
    else:
        text = ["the trace says otherwise than the model, which finds no z."]
    if not found.options:
        return [*text, f"No z up to the number of users, {users:,}, measures up on it."]
    text.append("These users are not independent and alike. What measures up on the trace:")
    rows = [["ids change every", "z", f"p_{found.k} measured", "released", "visible users"]]
    rows += [
        [*_option_row(option), f"{measured.visible:,}"]
        for option, measured in zip(found.options, found.measured, strict=True)
    ]
    return [*text, _table(rows)]


def _checked(found: TracePlan, reading: Reading) -> list[str]:
    """Say what was measured, and what could not be."""
    text = []
    if found.windows < found.horizon:
        text.append(
            f"only {_windows(found.windows, 'one window')} of {found.horizon:g} could be checked: "
            "the trace is no longer, and what more of it would show is not known."
        )
    if found.holds:
        text.append(
            f"checked: no measured p_{found.k} is below {found.probability:g} by more than the "
            "sampling error (99 %), so the model holds here."
        )
    trace = reading.trace
    without = ["the first (the gate begins empty)"] if found.warm_up else []
    if trace.windows > trace.whole_windows:
        without.append("the last (the trace covers a part of it)")
    words = f"measured: {_windows(found.windows, 'one window')}"
    text.append(words + (f", without {' and '.join(without)}." if without else "."))
    if any(each.periods * each.windows < found.windows for each in found.measured):
        text.append("          A last piece shorter than a period is left out of its row.")
    if trace.empty_windows > trace.windows / 2:
        text.append(
            f"note: {trace.empty_windows:,} of {trace.windows:,} windows hold nothing; a wrong "
            "time far from the others would do that, or a window too short."
        )
    return text


def _kept(found: Plan | TracePlan) -> str:
    if found.kept is None:
        return f"with ids that stay, no z reaches it over {found.horizon:g} windows"
    by = "" if _by_model(found) else ", as measured"
    return (
        f"with ids that stay: z = {found.kept.z:,}, "
        f"p_{found.k} = {found.kept.p_k:.5f}, {found.kept.released:.1%} released{by}"
    )


def _option_row(option: Option) -> list[str]:
    return [
        _windows(option.rotate_every), f"{option.z:,}", f"{option.p_k:.5f}",
        f"{option.released:.1%}",
    ]  # fmt: skip


def _option_dict(option: Option) -> dict[str, Any]:
    return {
        "rotate_every": option.rotate_every,
        "z": option.z,
        "p_k": option.p_k,
        "released": option.released,
    }


def _measurement_dict(found: Measurement) -> dict[str, Any]:
    return {
        "rotate_every": found.rotate_every,
        "z": found.z,
        "p_k": found.p_k,
        "p_k_low": found.low,
        "p_k_high": found.high,
        "released": found.released,
        "windows": found.windows,
        "periods": found.periods,
        "users_visible": found.visible,
    }


def _p_k(found: Measurement) -> str:
    return "nobody" if found.p_k is None else f"{found.p_k:.5f}"


def _assumed(found: Plan | TracePlan) -> str:
    return "assumed: " + ";\n         ".join(_assumptions(found))


def _assumptions(found: Plan | TracePlan) -> tuple[str, ...]:
    """Give what the figures rest on: where they are measured, no model of users."""
    if _by_model(found):
        return ASSUMPTIONS
    return ("users go on as in the trace", OBSERVER)


def _by_model(found: Plan | TracePlan) -> bool:
    return getattr(found, "holds", True)


def _windows(count: float, one: str = "window") -> str:
    return one if count == 1 else f"{count:g} windows"


def _table(rows: Rows) -> str:
    """Align to the right; what the last column of a comparison remarks, to the left."""
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    wide = [max(width, least) for width, least in zip(wide, (18, 7, 8, 8, 0, 0, 0), strict=False)]
    last = len(wide) - 1 if not rows[0][-1] else len(wide)
    return "\n".join(
        "  ".join(
            cell if at == last else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in rows
    )
