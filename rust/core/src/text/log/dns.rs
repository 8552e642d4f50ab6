//! Queries in the logs of dnsmasq and unbound, written by themselves or through syslog.
//!
//! ```text
//! Oct 10 13:55:36 dnsmasq[1234]: query[A] example.org from 192.0.2.7
//! 2024-10-10T13:55:36.5+02:00 router dnsmasq[1234]: 17 192.0.2.7/53211 query[A] example.org from 192.0.2.7
//! [1600000000] unbound[123:0] info: 192.0.2.7 example.org. A IN
//! Oct 10 13:55:36 router unbound: [123:0] info: 192.0.2.7 example.org. A IN
//! ```

use super::moment::{Stamp, leading};
use super::{Wrong, plain};
use crate::text::TimeFormat;
use crate::text::cell::{Cell, Kind};
use crate::text::problem::Problem;
use std::net::IpAddr;

/// Of both.
pub(super) const COLUMNS: [&str; 4] = ["time", "client", "name", "type"];

/// The time of a query, `None` for a line that is none.
type Query = Result<Option<Stamp>, Wrong>;

/// A query in the log of dnsmasq.
pub(super) fn dnsmasq(line: &[u8], found: &mut Vec<Cell>) -> Query {
    let (stamp, after) = leading(line).ok_or((Problem::Syntax, 0))?;
    let Some(mut at) = message(line, after, b"dnsmasq") else { return Ok(None) };
    // With `log-queries=extra` a number and who asked come first.
    let mut words = line[at..].splitn(3, |byte| *byte == b' ');
    if let (Some(number), Some(asked), Some(_)) = (words.next(), words.next(), words.next())
        && number.iter().all(u8::is_ascii_digit)
        && asked.contains(&b'/')
    {
        at += number.len() + asked.len() + 2;
    }
    let Some(rest) = line[at..].strip_prefix(b"query[") else { return Ok(None) };
    let cut_off = (Problem::CutOff, line.len());
    let kind = at + b"query[".len();
    let kind_end = kind + memchr::memchr(b']', rest).ok_or(cut_off)?;
    let name = kind_end + 2;
    let asked = line.get(name..).ok_or(cut_off)?;
    let from = name + memchr::memmem::rfind(asked, b" from ").ok_or(cut_off)?;
    let client = from + b" from ".len();
    if line[kind_end + 1] != b' ' {
        return Err((Problem::Syntax, kind_end + 1));
    }
    let end = line.trim_ascii_end().len();
    if !line.get(client..end).is_some_and(is_address) {
        return Err((Problem::Syntax, client));
    }
    let mut name = name_cell(line, name, from);
    if memchr::memchr(b' ', name.of(line)).is_some() {
        // It says in words that the name cannot be printed.
        name.kind = Kind::Null;
    }
    found.clear();
    let time = Cell::new(0, after - 1, Kind::Text);
    found.extend([time, plain(line, client, end), name, plain(line, kind, kind_end)]);
    Ok(Some(stamp))
}

/// A query in the log of unbound. Replies, which repeat it, are none.
pub(super) fn unbound(line: &[u8], found: &mut Vec<Cell>) -> Query {
    let (stamp, time, at) = match line {
        [b'[', rest @ ..] => {
            let len = memchr::memchr(b']', rest).ok_or((Problem::CutOff, line.len()))?;
            let stamp =
                TimeFormat::Seconds.parse(&rest[..len]).map_or(Stamp::Unclear, Stamp::Nanos);
            if rest.get(len + 1) != Some(&b' ') {
                return Err((Problem::Syntax, len + 2));
            }
            (stamp, Cell::new(1, 1 + len, Kind::Text), len + 3)
        }
        _ => {
            let (stamp, after) = leading(line).ok_or((Problem::Syntax, 0))?;
            (stamp, Cell::new(0, after - 1, Kind::Text), after)
        }
    };
    let Some(at) = message(line, at, b"unbound") else { return Ok(None) };
    let Some(info) = memchr::memmem::find(&line[at..], b"info: ") else { return Ok(None) };
    // Before it nothing but the process and thread, where syslog did not take them.
    if memchr::memchr_iter(b' ', &line[at..at + info]).count() > 1 {
        return Ok(None);
    }
    let at = at + info + b"info: ".len();
    let at = at + if line[at..].starts_with(b"query: ") { b"query: ".len() } else { 0 };
    let end = line.trim_ascii_end().len();
    let mut words = [(0, 0); 4];
    let mut count = 0;
    let mut start = at;
    for stop in
        memchr::memchr_iter(b' ', &line[at.min(end)..end]).map(|stop| at + stop).chain([end])
    {
        let Some(word) = words.get_mut(count) else { return Ok(None) };
        *word = (start, stop);
        count += 1;
        start = stop + 1;
    }
    let [client, name, kind, class] = words;
    let is_class = matches!(&line[class.0..class.1], b"IN" | b"CH" | b"HS" | b"ANY");
    if count < words.len() || !is_class || !is_address(&line[client.0..client.1]) {
        return Ok(None);
    }
    found.clear();
    let cell = |(start, end): (usize, usize)| plain(line, start, end);
    found.extend([time, cell(client), name_cell(line, name.0, name.1), cell(kind)]);
    Ok(Some(stamp))
}

/// Where the message begins behind the name of the program, perhaps with a host before it.
fn message(line: &[u8], start: usize, program: &[u8]) -> Option<usize> {
    let mut at = start;
    for _ in 0..2 {
        let rest = line.get(at..)?;
        let len = memchr::memchr(b' ', rest)?;
        let word = rest[..len].strip_suffix(b":").unwrap_or(&rest[..len]);
        if let Some(behind) = word.strip_prefix(program)
            && (behind.is_empty() || behind.starts_with(b"[") && behind.ends_with(b"]"))
        {
            return Some(at + len + 1);
        }
        at += len + 1;
    }
    None
}

/// A name without the dot at its end, which one program writes and the other does not.
fn name_cell(line: &[u8], start: usize, end: usize) -> Cell {
    let is_dotted = end > start + 1 && line[end - 1] == b'.';
    plain(line, start, end - usize::from(is_dotted))
}

fn is_address(text: &[u8]) -> bool {
    let text = text.split(|byte| *byte == b'%').next().unwrap_or_default();
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}
