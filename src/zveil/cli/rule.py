"""The policy of a run: read from a file, or made of the options that are its short form."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from zveil.cli.inputs import duration
from zveil.io import PRESETS
from zveil.names import Names
from zveil.policy import Hold, Policy, PolicyError, read_policy


class Said(NamedTuple):
    """An option that says what a key of a policy file says."""

    option: str
    section: str
    key: str

    def __str__(self) -> str:
        section = f"[[{self.section}]]" if self.section == "attribute" else f"[{self.section}]"
        return f"{section} {self.key}"


OPTIONS = {
    "time": Said("--time", "time", "field"),
    "time_format": Said("--time-format", "time", "format"),
    "year": Said("--year", "time", "year"),
    "round": Said("--round", "time", "round"),
    "user": Said("--user", "user", "field"),
    "pseudonym": Said("--pseudonym", "user", "pseudonym"),
    "raw_users": Said("--raw-users", "user", "pseudonym"),
    "rotate": Said("--rotate", "user", "rotate"),
    "keep_keys": Said("--keep-keys", "user", "keep_keys"),
    "attributes": Said("--attribute", "attribute", "field"),
    "z": Said("-z", "attribute", "z"),
    "window": Said("--window", "attribute", "window"),
    "noise": Said("--noise", "attribute", "noise"),
    "swap": Said("--swap", "attribute", "swap"),
    "only": Said("--only", "attribute", "only"),
    "except_": Said("--except", "attribute", "except"),
    "hold": Said("--hold", "hold", "p"),
    "z_min": Said("--z-min", "hold", "z_min"),
    "z_max": Said("--z-max", "hold", "z_max"),
    "keep": Said("--keep", "record", "keep"),
    "empty": Said("--veiled", "record", "empty"),
    "lateness": Said("--lateness", "limits", "lateness"),
    "max_future": Said("--max-future", "limits", "max_future"),
    "memory": Said("--memory", "limits", "memory"),
    "max_attributes": Said("--max-attributes", "limits", "attributes"),
    "format": Said("--format", "input", "format"),
    "id": Said("--id", "input", "id"),
}
_REQUIRED = ("time", "user", "attributes", "window")
_TYPED = (
    "keep", "time-format", "key-file", "max-line", "max-future", "rotate", "state-every",
    "meter-memory",
)  # fmt: skip
_DURATIONS = ("window", "lateness", "max_future", "rotate")


class RuleError(ValueError):
    """Options or a policy file that do not make a policy; the words name the option."""


def policy_of(file: str | None, said: Mapping[str, Any]) -> Policy:
    """Give the policy of a run.

    Parameters
    ----------
    file
        The policy file, if one was named.
    said
        What was said by options, by their names in `OPTIONS`; nothing where one was not given.
    """
    given = {name: value for name, value in said.items() if value not in (None, (), False)}
    return _of_options(given) if file is None else _of_file(file, given)


def _of_file(file: str, given: Mapping[str, Any]) -> Policy:
    # How the records of this run are written may be said beside a file that does not say it.
    for name in given:
        if name != "format":
            raise RuleError(_twice(name, file))
    try:
        policy = read_policy(file)
    except OSError as error:
        raise RuleError(f"--policy: {file}: {(error.strerror or '').lower()}") from None
    if "format" not in given:
        return policy
    if policy.input.format is not None:
        raise RuleError(_twice("format", file))
    try:
        return replace(policy, input=replace(policy.input, format=given["format"]))
    except PolicyError as error:
        raise RuleError(as_option(error)) from None


def _twice(name: str, file: str) -> str:
    said = OPTIONS[name]
    return (
        f"{said.option} and --policy: {file} says that, as {said}; "
        f"change it there, or leave --policy out"
    )


def _of_options(given: dict[str, Any]) -> Policy:
    options = dict(given)
    if preset := PRESETS.get(given.get("format", "")):
        options.setdefault("time", preset.time)
        options.setdefault("user", preset.user)
        options.setdefault("attributes", (preset.attribute,))
    for name in _REQUIRED:
        if name not in options:
            raise RuleError(f"Missing option '{OPTIONS[name].option}', or a --policy that says it.")
    for name in ("only", "except_"):
        if name in options:
            try:
                options[name] = Names.read(options[name])
            except ValueError as error:
                raise RuleError(f"{OPTIONS[name].option}: {error}") from None
    for name in _DURATIONS:
        if name in options:
            options[name] = duration(options[name])
    if "raw_users" in options and options.get("pseudonym", "raw") != "raw":
        raise RuleError("--raw-users: --pseudonym says something else; leave one of them out")
    if options.get("max_future") == "any":
        options["max_future"] = None
    _take_hold(options)
    try:
        return Policy.of(**options)
    except PolicyError as error:
        raise RuleError(as_option(error)) from None


def _take_hold(options: dict[str, Any]) -> None:
    """Make one thing of the level to hold and its limits, which stand in the place of z."""
    limits = {name: options.pop(name) for name in ("z_min", "z_max") if name in options}
    if "hold" not in options:
        for name in limits:
            raise RuleError(f"{OPTIONS[name].option}: expected with --hold only, which chooses z")
        return
    if "z" in options:
        raise RuleError(
            "-z: --hold chooses z; say the smallest and the largest with --z-min and --z-max"
        )
    try:
        options["hold"] = Hold.of(options["hold"], **limits)
    except PolicyError as error:
        raise RuleError(as_option(error.below(("hold",)))) from None
    options["z"] = options["hold"].z_min


def as_option(error: Exception) -> str:
    """Name what an error is about as it is typed: ``--window: ...``."""
    if not isinstance(error, PolicyError):
        name, colon, words = str(error).partition(": ")
        return f"--{name}{colon}{words}" if name in _TYPED else str(error)
    names = [part for part in error.where if isinstance(part, str)]
    if names == ["hold", "k"]:
        names = ["hold"]
    for option, section, key in OPTIONS.values():
        if names in ([section, key], [section]):
            return f"{option}: {error.words}"
    return str(error)
