//! JSON strings to text and back.

use super::super::block::Block;

/// Decodes a JSON string into UTF-8, appended to `out`. `raw` may come with its quotes or without:
/// an inside never begins with a quote.
///
/// The scan has checked it. What no scan would let pass is taken as it stands, half a surrogate pair
/// becomes U+FFFD.
pub fn unescape_json(raw: &[u8], out: &mut Vec<u8>) {
    let mut rest = match raw {
        [b'"', inside @ .., b'"'] => inside,
        inside => inside,
    };
    while let Some(plain) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..plain]);
        rest = &rest[plain + 1..];
        let Some((&letter, behind)) = rest.split_first() else {
            out.push(b'\\');
            return;
        };
        rest = behind;
        match letter {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => {
                let (character, behind) = unicode(rest);
                rest = behind;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            itself => out.push(itself),
        }
    }
    out.extend_from_slice(rest);
}

/// The character whose four hexadecimal digits (or two times four) come next.
fn unicode(text: &[u8]) -> (char, &[u8]) {
    const UNKNOWN: char = char::REPLACEMENT_CHARACTER;
    let Some((high, behind)) = unit(text) else { return (UNKNOWN, text) };
    if let Some(character) = char::from_u32(high) {
        return (character, behind);
    }
    let low = behind.strip_prefix(b"\\u").and_then(unit);
    match (high, low) {
        (0xD800..=0xDBFF, Some((low @ 0xDC00..=0xDFFF, behind))) => {
            let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            (char::from_u32(code).unwrap_or(UNKNOWN), behind)
        }
        _ => (UNKNOWN, behind),
    }
}

fn unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, behind) = text.split_at_checked(4)?;
    let mut unit = 0;
    for digit in digits {
        unit = unit << 4 | char::from(*digit).to_digit(16)?;
    }
    Some((unit, behind))
}

/// Appends text as a JSON string with its quotes. Only what must be escaped is.
pub fn quote_json(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let (mut plain, mut at) = (0, 0);
    while at < text.len() {
        let stops = Block::string_stops(text, at);
        if stops == 0 {
            at += Block::LEN;
            continue;
        }
        at += stops.trailing_zeros() as usize;
        let Some(&byte) = text.get(at) else { break };
        out.extend_from_slice(&text[plain..at]);
        at += 1;
        plain = at;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                let digit = |half: u8| b"0123456789abcdef"[usize::from(half & 15)];
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[digit(control >> 4), digit(control)]);
            }
        }
    }
    out.extend_from_slice(&text[plain..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unescape(raw: &str) -> String {
        let mut out = Vec::new();
        unescape_json(raw.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_have_their_meaning() {
        let raw = r#""a\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\uDE00z""#;
        let text = "a\"\\/\u{8}\u{c}\n\r\tAé€😀z";
        assert_eq!(unescape(raw), text);
        assert_eq!(unescape(&raw[1..raw.len() - 1]), text);
        assert_eq!(unescape(r#""""#), "");
        assert_eq!(unescape(r#"\""#), "\"");
    }

    #[test]
    fn only_what_must_be_escaped_is() {
        let mut out = Vec::new();
        quote_json("\0\u{1f}\u{7f}/é\u{2028}\"\\\n".as_bytes(), &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\"\\u0000\\u001f\u{7f}/é\u{2028}\\\"\\\\\\n\""
        );
    }

    proptest! {
        #[test]
        fn quoting_is_undone(text: String) {
            let mut quoted = Vec::new();
            quote_json(text.as_bytes(), &mut quoted);
            let end = super::super::value::string(&quoted, 0).map(|(end, _)| end);
            prop_assert_eq!(end, Ok(quoted.len()));
            prop_assert_eq!(unescape(std::str::from_utf8(&quoted).unwrap()), text);
        }

        #[test]
        fn anything_is_decoded_without_a_panic(raw: Vec<u8>, ascii in "[\"\\\\ud8c0-9a-f]{0,30}") {
            unescape_json(&raw, &mut Vec::new());
            unescape(&ascii);
        }
    }
}
