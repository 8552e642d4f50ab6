//! The combined log of Apache and nginx, and the common one that it extends.
//!
//! ```text
//! 192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b HTTP/1.1" 200 2326 "http://..." "Mozilla/..."
//! ```
//!
//! What a client sent stands in quotes, with a backslash before a quote and `\x16` for a byte that is
//! not printed. What a format of one's own adds at the end is passed over.

use super::moment::common;
use super::{Wrong, value};
use crate::text::cell::{Cell, Kind};
use crate::text::problem::Problem;

/// As nginx names them; `path` is the request's URI without its query.
pub(super) const COLUMNS: [&str; 12] = [
    "remote_addr",
    "remote_user",
    "time_local",
    "request",
    "status",
    "body_bytes_sent",
    "http_referer",
    "http_user_agent",
    "request_method",
    "request_uri",
    "server_protocol",
    "path",
];

/// Takes a line apart, and reads its time.
pub(super) fn scan(line: &[u8], found: &mut Vec<Cell>) -> Result<i64, Wrong> {
    let wrong = |at: usize| (Problem::Syntax, at);
    let cut_off = (Problem::CutOff, line.len());
    let space = memchr::memchr(b' ', line).ok_or(wrong(0))?;
    let bracket = memchr::memmem::find(&line[space..], b" [").ok_or(wrong(space))? + space;
    // Between the two: who identd says it is, then the name that the client gave, which may hold
    // spaces.
    let between = line.get(space + 1..bracket).ok_or(wrong(space))?;
    let ident = memchr::memchr(b' ', between).ok_or(wrong(space + 1))?;
    let time = bracket + 2;
    let time_end = memchr::memchr(b']', &line[time..]).ok_or(cut_off)? + time;
    let nanos = common(&line[time..time_end]).ok_or((Problem::Time, time))?;
    let request = quoted(line, time_end + 1)?;
    let status = word(line, request.end as usize + 1)?;
    let bytes = word(line, status.1)?;
    let is_number = |(start, end): (usize, usize)| {
        matches!(&line[start..end], b"-") || line[start..end].iter().all(u8::is_ascii_digit)
    };
    if !is_number(status) || !is_number(bytes) {
        return Err(wrong(status.0));
    }
    let (mut referer, mut agent) = (Cell::default(), Cell::default());
    if bytes.1 < line.len() {
        referer = quoted(line, bytes.1)?;
        agent = quoted(line, referer.end as usize + 1)?;
        let end = agent.end as usize + 1;
        if !matches!(line.get(end), None | Some(b' ')) {
            return Err(wrong(end));
        }
    }
    let [method, uri, protocol, path] = parts(line, &request);
    found.clear();
    found.extend([
        value(line, 0, space),
        value(line, space + 1 + ident + 1, bracket),
        Cell::new(time, time_end, Kind::Text),
        request,
        value(line, status.0, status.1),
        value(line, bytes.0, bytes.1),
        referer,
        agent,
        method,
        uri,
        protocol,
        path,
    ]);
    Ok(nanos)
}

/// A space, and a text in quotes: where it lies, without them.
fn quoted(line: &[u8], at: usize) -> Result<Cell, Wrong> {
    match line.get(at..).unwrap_or_default() {
        [b' ', b'"', ..] => {}
        [] | [b' '] => return Err((Problem::CutOff, line.len())),
        _ => return Err((Problem::Syntax, at)),
    }
    let start = at + 2;
    let mut end = start;
    loop {
        match memchr::memchr2(b'"', b'\\', &line[end..]) {
            Some(found) if line[end + found] == b'"' => return Ok(value(line, start, end + found)),
            // Whatever is escaped is passed over with its backslash.
            Some(found) if end + found + 2 <= line.len() => end += found + 2,
            _ => return Err((Problem::CutOff, at + 1)),
        }
    }
}

/// A space, and a word: from where to where.
fn word(line: &[u8], at: usize) -> Result<(usize, usize), Wrong> {
    match line.get(at..).unwrap_or_default() {
        [b' ', byte, ..] if *byte != b' ' => {}
        [] | [b' '] => return Err((Problem::CutOff, line.len())),
        _ => return Err((Problem::Syntax, at)),
    }
    let start = at + 1;
    let len = memchr::memchr(b' ', &line[start..]).unwrap_or(line.len() - start);
    Ok((start, start + len))
}

/// Method, URI, protocol and path of a request that is one; of anything else nothing.
fn parts(line: &[u8], request: &Cell) -> [Cell; 4] {
    let none = Cell { kind: Kind::Null, ..*request };
    let (start, end) = (request.start as usize, request.end as usize);
    let text = &line[start..end];
    let Some(first) = memchr::memchr(b' ', text) else { return [none; 4] };
    let is_method = first > 0 && text[..first].iter().all(u8::is_ascii_uppercase);
    let uri = first + 1;
    let (uri_end, protocol) = match memchr::memrchr(b' ', &text[uri..]) {
        Some(last) if text[uri + last + 1..].starts_with(b"HTTP/") => (uri + last, uri + last + 1),
        // As the first version of HTTP had it.
        None => (text.len(), text.len()),
        Some(_) => return [none; 4],
    };
    if !is_method || uri_end == uri {
        return [none; 4];
    }
    let path_end = memchr::memchr2(b'?', b'#', &text[uri..uri_end]).map_or(uri_end, |at| uri + at);
    let part = |from: usize, to: usize| value(line, start + from, start + to);
    [part(0, first), part(uri, uri_end), part(protocol, text.len()), part(uri, path_end)]
}
