//! Escapes as logs write them: `\x09` for a byte, `\\` for a backslash, and in quotes `\"`, `\n`.

/// Appends text with its escapes undone. Where that gives no text (bytes that are not UTF-8, a NUL)
/// the value stays as it was written: it is one value either way, and can be written anywhere.
///
/// `in_quotes`: a web server's, who also writes `\"`, `\n` and others by a letter. An escape that is
/// none stays as it is.
pub(crate) fn unescape(raw: &[u8], in_quotes: bool, out: &mut Vec<u8>) {
    let first = out.len();
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let (byte, len) = match rest[at..] {
            [_, b'x', high, low, ..] => match (digit(high), digit(low)) {
                (Some(high), Some(low)) => (high << 4 | low, 4),
                _ => (b'\\', 1),
            },
            [_, b'\\', ..] => (b'\\', 2),
            [_, letter, ..] if in_quotes => match lettered(letter) {
                Some(byte) => (byte, 2),
                None => (b'\\', 1),
            },
            _ => (b'\\', 1),
        };
        out.push(byte);
        rest = &rest[at + len..];
    }
    out.extend_from_slice(rest);
    let decoded = &out[first..];
    if memchr::memchr(0, decoded).is_some() || simdutf8::basic::from_utf8(decoded).is_err() {
        out.truncate(first);
        out.extend_from_slice(raw);
    }
}

fn digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

fn lettered(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' => b'"',
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'v' => 0x0B,
        b'f' => 0x0C,
        _ => return None,
    })
}
