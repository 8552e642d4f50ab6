"""Presets: logs of programs that many run, each with the fields that are meant by default."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from zveil.io.formats import WRITABLE, Format


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A log, by the name that ``--format`` and a policy's ``input.format`` take.

    Fields are called as the program calls them.
    """

    format: Format
    time: str
    user: str
    attribute: str
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Fields that hold others inside: if one of these is decided about, none of those may leave."""

    def leaks(self, attributes: Sequence[str], kept: str) -> Iterator[str]:
        """Give the attributes that would leave undecided with a field that is kept."""
        holders = self.parts if kept == "*" else [kept]
        for holder in holders:
            inside = self.parts.get(holder, ())
            yield from (name for name in attributes if name in inside and holder not in attributes)


_REQUEST = ("request_method", "request_uri", "server_protocol", "path")

PRESETS = {
    "zeek-conn": Preset(format=Format.ZEEK, time="ts", user="id.orig_h", attribute="id.resp_h"),
    "zeek-dns": Preset(format=Format.ZEEK, time="ts", user="id.orig_h", attribute="query"),
    "zeek-http": Preset(format=Format.ZEEK, time="ts", user="id.orig_h", attribute="host"),
    "zeek-ssl": Preset(format=Format.ZEEK, time="ts", user="id.orig_h", attribute="server_name"),
    "tstat-tcp": Preset(format=Format.TSTAT_TCP, time="first", user="c_ip", attribute="fqdn"),
    "tstat-http": Preset(format=Format.TSTAT_HTTP, time="time", user="c_ip", attribute="hostname"),
    "combined": Preset(
        format=Format.COMBINED,
        time="time_local",
        user="remote_addr",
        attribute="path",
        parts={"request": _REQUEST, "request_uri": ("path",)},
    ),
    "dnsmasq": Preset(format=Format.DNSMASQ, time="time", user="client", attribute="name"),
    "unbound": Preset(format=Format.UNBOUND, time="time", user="client", attribute="name"),
}

NAMES = (*(form.value for form in WRITABLE), *PRESETS)
"""All that an input may be called."""


def format_of(name: str | None) -> Format | None:
    """Give the format that a name means: its own, or that of a preset.

    >>> format_of("csv"), format_of("zeek-dns")
    (<Format.CSV: 'csv'>, <Format.ZEEK: 'zeek'>)
    """
    if name is None:
        return None
    return PRESETS[name].format if name in PRESETS else Format(name)
