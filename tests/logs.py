"""Logs as programs write them, made up.

Addresses and names are those kept for documentation.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

START = 1_704_067_200  # 2024-01-01
NANO = 10**9
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

CLIENTS = [f"192.0.2.{n}" for n in range(1, 30)] + [f"2001:db8::{n:x}" for n in range(1, 9)]
NAMES = ["example.org", "www.example.org", "example.com", "shop.example.net", "ads.example", "-"]
ODD = ["(empty)", "a\tb", "back\\slash", "#x", "caf\u00e9.example", "a,b", "\x16\x03\x01"]
AGENTS = ["Mozilla/5.0 (X11; Linux)", 'say "hi"', "caf\u00e9", "-"]


class Visit(NamedTuple):
    """Somebody and something, at a time of whole seconds."""

    t: int
    client: str
    name: str


def visits(random: Random, count: int, *, odd: bool = False) -> list[Visit]:
    """Make up a stream in order."""
    now, made = START, []
    names = NAMES + (ODD if odd else [])
    for _ in range(count):
        now += random.choice([0, 0, 1, 2, 30, 400])
        made.append(Visit(now, random.choice(CLIENTS), random.choice(names)))
    return made


SSL = ["ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "version", "server_name",
       "established", "cert_chain_fuids"]  # fmt: skip
DNS = ["ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto", "query",
       "qtype_name", "answers"]  # fmt: skip
HTTP = ["ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "method", "host", "uri",
        "tags"]  # fmt: skip
CONN = ["ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto", "service",
        "duration", "tunnel_parents"]  # fmt: skip
TYPES = ["time", "string", "addr", "port", "addr", "port", "string", "string", "string",
         "set[string]"]  # fmt: skip


def zeek_text(value: str) -> str:
    """Escape a string as Zeek's ASCII writer does."""
    if value in ("-", "(empty)"):
        return f"\\x{ord(value[0]):02x}{value[1:]}"
    text = value.replace("\\", "\\\\")
    text = re.sub("[\x00-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", text)
    return re.sub("^#", r"\\x23", text)


def zeek_row(visit: Visit, path: str) -> list[str]:
    name = zeek_text(visit.name)
    if path == "conn":
        name = "ssl"
    first = [f"{visit.t}.{visit.t % 7:06d}", "CAcJw21BbVedgFnYH3", visit.client, "38340",
             "198.51.100.9", "443"]  # fmt: skip
    return (
        first
        + {
            "ssl": ["TLSv12", name, "T", "FeNwNk1KCpUqd5NRq4,FaqTB2"],
            "dns": ["udp", name, "A", "-"],
            "http": ["GET", name, "/", "(empty)"],
            "conn": ["tcp", name, "0.004266", "(empty)"],
        }[path]
    )


def zeek(made: list[Visit], path: str = "ssl") -> str:
    fields = {"ssl": SSL, "dns": DNS, "http": HTTP, "conn": CONN}[path]
    lines = [
        "#separator \\x09", "#set_separator\t,", "#empty_field\t(empty)", "#unset_field\t-",
        f"#path\t{path}", "#open\t2024-01-01-00-00-00", "\t".join(["#fields", *fields]),
        "\t".join(["#types", *TYPES]),
    ]  # fmt: skip
    lines += ["\t".join(zeek_row(visit, path)) for visit in made]
    return "\n".join([*lines, "#close\t2024-01-02-00-00-00", ""])


def zeek_json(made: list[Visit], *, iso: bool = False) -> str:
    """Write ssl.log as JSON: what is not set is left out."""
    lines = []
    for visit in made:
        moment = datetime.fromtimestamp(visit.t, UTC)
        members: dict[str, object] = {
            "ts": f"{moment:%Y-%m-%dT%H:%M:%S}.000000Z" if iso else visit.t + 0.25,
            "uid": "CAcJw21BbVedgFnYH3", "id.orig_h": visit.client, "id.orig_p": 38340,
            "id.resp_h": "198.51.100.9", "id.resp_p": 443, "server_name": visit.name,
            "established": True, "cert_chain_fuids": ["FeNwNk1KCpUqd5NRq4"],
        }  # fmt: skip
        if visit.name == "-":
            del members["server_name"]
        lines.append(json.dumps(members, separators=(",", ":"), ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)


TCP = re.split(
    " ",
    "c_ip c_port c_pkts_all c_rst_cnt c_ack_cnt c_ack_cnt_p c_bytes_uniq c_pkts_data c_bytes_all "
    "c_pkts_retx c_bytes_retx c_pkts_ooo c_syn_cnt c_fin_cnt s_ip s_port s_pkts_all s_rst_cnt "
    "s_ack_cnt s_ack_cnt_p s_bytes_uniq s_pkts_data s_bytes_all s_pkts_retx s_bytes_retx "
    "s_pkts_ooo s_syn_cnt s_fin_cnt first last durat c_first s_first c_last s_last c_first_ack "
    "s_first_ack c_isint s_isint c_iscrypto s_iscrypto con_t p2p_t http_t c_tls_SNI s_tls_SCN fqdn",
)


def plain_name(visit: Visit) -> str:
    """A name as a program writes it that does not escape."""
    return "-" if re.search(r"[\s\x00-\x1f]", visit.name) else visit.name


def tstat_tcp(made: list[Visit]) -> str:
    header = " ".join(f"{name}:{place}" for place, name in enumerate(TCP, 1))
    lines = [f"#15#{header}"]
    for visit in made:
        row = dict.fromkeys(TCP, "0") | {
            "c_ip": visit.client, "s_ip": "198.51.100.9", "first": f"{visit.t * 1000}.000000",
            "last": f"{visit.t * 1000 + 80}.500000", "c_tls_SNI": "-", "fqdn": plain_name(visit),
        }  # fmt: skip
        lines.append(" ".join(row.values()))
    return "\n".join([*lines, ""])


def tstat_http(made: list[Visit]) -> str:
    lines = []
    for visit in made:
        ends = [visit.client, "38340", "198.51.100.9", "80", f"{visit.t}.000000"]
        host = plain_name(visit)
        lines.append([*ends, "GET", host, host, "-", "-", "Mozilla/5.0 (X11; Linux)", "-", "-"])
        lines.append([*ends, "HTTP", "200", "648", "text/html", "nginx", "-", "-", "-"])
    return "".join("\t".join(line) + "\n" for line in lines)


def quoted(text: str) -> str:
    """Escape as nginx does: quotes, backslashes and all that is not printed, byte by byte."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02X}"
        for byte in text.encode()
    )


def combined(made: list[Visit]) -> str:
    lines = []
    for number, visit in enumerate(made):
        moment = datetime.fromtimestamp(visit.t + 7200, UTC)
        stamp = f"{moment:%d}/{MONTHS[moment.month - 1]}/{moment:%Y:%H:%M:%S} +0200"
        request = f"GET /{quoted(visit.name)}?n={number} HTTP/1.1"
        request = {0: "-", 1: "\\x16\\x03\\x01"}.get(number % 23, request)
        agent = quoted(AGENTS[number % len(AGENTS)])
        lines.append(
            f'{visit.client} - - [{stamp}] "{request}" 200 {number} '
            f'"http://www.example.org/" "{agent}"\n'
        )
    return "".join(lines)


def syslog_time(t: int) -> str:
    moment = datetime.fromtimestamp(t, UTC)
    return f"{MONTHS[moment.month - 1]} {moment.day:2d} {moment:%H:%M:%S}"


def dnsmasq(made: list[Visit]) -> str:
    lines = []
    for number, visit in enumerate(made):
        name = plain_name(visit)
        at = f"{syslog_time(visit.t)} {'router ' * (number % 2)}dnsmasq[1234]:"
        extra = f"{number} {visit.client}/40042 " if number % 3 == 0 else ""
        lines += [
            f"{at} {extra}query[A] {name} from {visit.client}",
            f"{at} {extra}forwarded {name} to 198.51.100.53",
            f"{at} {extra}reply {name} is 198.51.100.9",
        ]
    return "".join(f"{line}\n" for line in lines)


def unbound(made: list[Visit]) -> str:
    lines = ["[1704067200] unbound[1234:0] notice: init module 0: validator"]
    for number, visit in enumerate(made):
        query = f"{visit.client} {plain_name(visit)}. A IN"
        lines.append(
            f"{syslog_time(visit.t)} router unbound: [1234:0] info: {query}"
            if number % 4 == 0
            else f"[{visit.t}] unbound[1234:0] info: {query}"
        )
        lines.append(f"[{visit.t}] unbound[1234:0] info: {query} NOERROR 0.000000 0 45")
    return "".join(f"{line}\n" for line in lines)


WRITERS: dict[str, Callable[[list[Visit]], str]] = {
    "zeek-ssl": zeek,
    "zeek-dns": lambda made: zeek(made, "dns"),
    "zeek-http": lambda made: zeek(made, "http"),
    "zeek-conn": lambda made: zeek(made, "conn"),
    "tstat-tcp": tstat_tcp,
    "tstat-http": tstat_http,
    "combined": combined,
    "dnsmasq": dnsmasq,
    "unbound": unbound,
}
