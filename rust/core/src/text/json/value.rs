//! Skipping over JSON values while checking every byte of them.
//!
//! A place in the line is a number `at`; [`byte`] gives zero past the end, which is valid nowhere,
//! so that the end needs no question of its own until something has failed.

use super::super::block::Block;
use super::super::{Kind, Problem};
use super::keys::Keys;

/// What is wrong, and where.
pub(super) type Failure = (Problem, usize);

/// Objects and arrays within each other, the outermost counted.
pub(super) const DEEPEST: u32 = 128;

#[inline(always)]
pub(super) fn byte(line: &[u8], at: usize) -> u8 {
    line.get(at).copied().unwrap_or(0)
}

/// The failure at a byte that cannot be there, or that is missing.
#[cold]
pub(super) fn unfit(line: &[u8], at: usize) -> Failure {
    if at < line.len() { (Problem::Syntax, at) } else { (Problem::CutOff, line.len()) }
}

/// Behind white space. No line feed: a record is one line, and is written as one line again.
#[inline(always)]
pub(super) fn space(line: &[u8], mut at: usize) -> usize {
    // Mostly there is none.
    if byte(line, at) > b' ' {
        return at;
    }
    while matches!(byte(line, at), b' ' | b'\t' | b'\r') {
        at += 1;
    }
    at
}

/// Skips a string from its opening quote on: the place behind it, and whether it holds escapes.
#[inline(always)]
pub(super) fn string(line: &[u8], start: usize) -> Result<(usize, bool), Failure> {
    let at = plain_run(line, start + 1);
    if byte(line, at) == b'"' { Ok((at + 1, false)) } else { string_on(line, at) }
}

/// The first byte that is no plain part of a string, or the end.
#[inline(always)]
fn plain_run(line: &[u8], mut at: usize) -> usize {
    loop {
        let stops = Block::string_stops(line, at);
        if stops != 0 {
            return at + stops.trailing_zeros() as usize;
        }
        at += Block::LEN;
    }
}

/// Skips a string without escapes or a number, as most values are; `None` for all else.
#[inline(always)]
pub(super) fn plain_value(line: &[u8], start: usize) -> Option<(usize, Kind)> {
    match byte(line, start) {
        b'"' => {
            let end = plain_run(line, start + 1);
            (byte(line, end) == b'"').then_some((end + 1, Kind::Text))
        }
        b'-' | b'0'..=b'9' => plain_number(line, start),
        _ => None,
    }
}

/// Goes on with a string where it has an escape, or fails.
#[inline(never)]
fn string_on(line: &[u8], mut at: usize) -> Result<(usize, bool), Failure> {
    loop {
        match byte(line, at) {
            b'"' => return Ok((at + 1, true)),
            b'\\' => at = escape(line, at)?,
            0..0x20 => return Err(unfit(line, at)),
            _ => {
                let stops = Block::string_stops(line, at);
                // A block without a stop has 32 zeros in a mask of 16.
                at += (stops.trailing_zeros() as usize).min(Block::LEN);
            }
        }
    }
}

/// Skips an escape. Half a surrogate pair has no form in UTF-8.
fn escape(line: &[u8], at: usize) -> Result<usize, Failure> {
    match byte(line, at + 1) {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(at + 2),
        b'u' => match hex(line, at + 2)? {
            0xD800..=0xDBFF => {
                for (place, expected) in [(at + 6, b'\\'), (at + 7, b'u')] {
                    if place >= line.len() {
                        return Err(unfit(line, place));
                    }
                    if line[place] != expected {
                        return Err((Problem::NotUtf8, at));
                    }
                }
                match hex(line, at + 8)? {
                    0xDC00..=0xDFFF => Ok(at + 12),
                    _ => Err((Problem::NotUtf8, at)),
                }
            }
            0xDC00..=0xDFFF => Err((Problem::NotUtf8, at)),
            _ => Ok(at + 6),
        },
        _ => Err(unfit(line, at + 1)),
    }
}

fn hex(line: &[u8], start: usize) -> Result<u32, Failure> {
    let mut unit = 0;
    for at in start..start + 4 {
        let digit = char::from(byte(line, at)).to_digit(16).ok_or_else(|| unfit(line, at))?;
        unit = unit << 4 | digit;
    }
    Ok(unit)
}

/// Skips a number that ends within sixteen bytes and has no exponent, as nearly all: without a loop.
#[inline(always)]
fn plain_number(line: &[u8], start: usize) -> Option<(usize, Kind)> {
    let first = start + usize::from(byte(line, start) == b'-');
    let block = Block::at(line, first);
    let digits = block.digits();
    let whole = digits.trailing_ones();
    if whole == 0 || whole >= 15 || (block.0 as u8 == b'0' && whole > 1) {
        return None;
    }
    let behind = first + whole as usize;
    match byte(line, behind) {
        b'.' => {
            let decimals = (digits >> (whole + 1)).trailing_ones();
            let end = behind + 1 + decimals as usize;
            let is_open = decimals == 0 || whole + 1 + decimals >= 16;
            let has_exponent = matches!(byte(line, end), b'e' | b'E');
            (!is_open && !has_exponent).then_some((end, Kind::Number))
        }
        b'e' | b'E' => None,
        _ => Some((behind, Kind::Integer)),
    }
}

#[inline(always)]
fn number(line: &[u8], start: usize) -> Result<(usize, Kind), Failure> {
    match plain_number(line, start) {
        Some(found) => Ok(found),
        None => long_number(line, start),
    }
}

/// Skips any number, byte by byte; says what is wrong with one that is none.
#[inline(never)]
pub(super) fn long_number(line: &[u8], start: usize) -> Result<(usize, Kind), Failure> {
    let digits = |from: usize| {
        let mut at = from;
        while byte(line, at).is_ascii_digit() {
            at += 1;
        }
        if at == from { Err(unfit(line, at)) } else { Ok(at) }
    };
    let mut kind = Kind::Integer;
    let first = start + usize::from(byte(line, start) == b'-');
    let mut at = digits(first)?;
    if byte(line, first) == b'0' && at > first + 1 {
        return Err((Problem::Syntax, first + 1));
    }
    if byte(line, at) == b'.' {
        kind = Kind::Number;
        at = digits(at + 1)?;
    }
    if matches!(byte(line, at), b'e' | b'E') {
        kind = Kind::Number;
        at += 1 + usize::from(matches!(byte(line, at + 1), b'+' | b'-'));
        at = digits(at)?;
    }
    Ok((at, kind))
}

fn literal(line: &[u8], start: usize, word: &[u8]) -> Result<usize, Failure> {
    for (place, expected) in word.iter().enumerate() {
        if byte(line, start + place) != *expected {
            return Err(unfit(line, start + place));
        }
    }
    Ok(start + word.len())
}

/// Skips a value that lies within `depth` objects and arrays.
#[inline(always)]
pub(super) fn value(
    line: &[u8],
    at: usize,
    depth: u32,
    keys: &mut Keys,
) -> Result<(usize, Kind), Failure> {
    match byte(line, at) {
        b'"' => {
            let (end, escaped) = string(line, at)?;
            Ok((end, if escaped { Kind::EscapedText } else { Kind::Text }))
        }
        b'-' | b'0'..=b'9' => number(line, at),
        _ => other_value(line, at, depth, keys),
    }
}

#[inline(never)]
fn other_value(
    line: &[u8],
    at: usize,
    depth: u32,
    keys: &mut Keys,
) -> Result<(usize, Kind), Failure> {
    match byte(line, at) {
        b'{' => Ok((object(line, at, depth + 1, keys)?, Kind::Object)),
        b'[' => Ok((array(line, at, depth + 1, keys)?, Kind::Array)),
        b't' => Ok((literal(line, at, b"true")?, Kind::True)),
        b'f' => Ok((literal(line, at, b"false")?, Kind::False)),
        b'n' => Ok((literal(line, at, b"null")?, Kind::Null)),
        _ => Err(unfit(line, at)),
    }
}

/// Skips an object in which nothing is looked for; its keys must differ all the same.
fn object(line: &[u8], start: usize, depth: u32, keys: &mut Keys) -> Result<usize, Failure> {
    if depth > DEEPEST {
        return Err((Problem::TooDeep, start));
    }
    let mut at = space(line, start + 1);
    if byte(line, at) == b'}' {
        return Ok(at + 1);
    }
    let first = keys.begin();
    loop {
        let (end, escaped) = key(line, at)?;
        keys.push(line, at, end, escaped);
        at = space(line, colon(line, end)?);
        (at, _) = value(line, at, depth, keys)?;
        at = space(line, at);
        match byte(line, at) {
            b',' => at = space(line, at + 1),
            b'}' => break,
            _ => return Err(unfit(line, at)),
        }
    }
    keys.end(first, line, &[])?;
    Ok(at + 1)
}

/// Skips a key: a string, where nothing else may be.
#[inline(always)]
pub(super) fn key(line: &[u8], at: usize) -> Result<(usize, bool), Failure> {
    if byte(line, at) == b'"' { string(line, at) } else { Err(unfit(line, at)) }
}

/// Behind the colon that follows a key.
#[inline(always)]
pub(super) fn colon(line: &[u8], at: usize) -> Result<usize, Failure> {
    let at = space(line, at);
    if byte(line, at) == b':' { Ok(at + 1) } else { Err(unfit(line, at)) }
}

fn array(line: &[u8], start: usize, depth: u32, keys: &mut Keys) -> Result<usize, Failure> {
    if depth > DEEPEST {
        return Err((Problem::TooDeep, start));
    }
    let mut at = space(line, start + 1);
    if byte(line, at) == b']' {
        return Ok(at + 1);
    }
    loop {
        (at, _) = value(line, at, depth, keys)?;
        at = space(line, at);
        match byte(line, at) {
            b',' => at = space(line, at + 1),
            b']' => return Ok(at + 1),
            _ => return Err(unfit(line, at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_told_apart() {
        for (text, kind) in [
            ("0", Kind::Integer),
            ("-0", Kind::Integer),
            ("17", Kind::Integer),
            ("-123456789012345678901234567890", Kind::Integer),
            ("0.5", Kind::Number),
            ("-0.0", Kind::Number),
            ("1e3", Kind::Number),
            ("1E+3", Kind::Number),
            ("1.0e-3", Kind::Number),
            ("1700000000.1234567890", Kind::Number),
        ] {
            assert_eq!(number(text.as_bytes(), 0), Ok((text.len(), kind)), "{text}");
        }
        for (text, at) in [("01", 1), ("-01", 2), ("-x", 1), ("1.x", 2), ("1ex", 2), ("1e+x", 3)] {
            assert_eq!(number(text.as_bytes(), 0), Err((Problem::Syntax, at)), "{text}");
        }
        for text in ["-", "1.", "1e", "1e-", "123456789012345."] {
            assert_eq!(number(text.as_bytes(), 0), Err((Problem::CutOff, text.len())), "{text}");
        }
    }

    #[test]
    fn escapes_are_checked() {
        for text in [r#""\n""#, r#""a\\""#, r#""\u00e9""#, r#""\ud83d\ude00 and more than that""#] {
            assert_eq!(string(text.as_bytes(), 0), Ok((text.len(), true)), "{text}");
        }
        for (text, failure) in [
            (r#""\x""#, (Problem::Syntax, 2)),
            (r#""\u12g4""#, (Problem::Syntax, 5)),
            (r#""\ud83d""#, (Problem::NotUtf8, 1)),
            (r#""\ud83dx""#, (Problem::NotUtf8, 1)),
            (r#""\ud83d\n""#, (Problem::NotUtf8, 1)),
            (r#""\ud83d\u0041""#, (Problem::NotUtf8, 1)),
            (r#""\ude00\ud83d""#, (Problem::NotUtf8, 1)),
            ("\"a\tb\"", (Problem::Syntax, 2)),
        ] {
            assert_eq!(string(text.as_bytes(), 0), Err(failure), "{text}");
        }
        let whole = br#""\ud83d\ude00""#;
        for end in 1..whole.len() {
            assert_eq!(string(&whole[..end], 0), Err((Problem::CutOff, end)));
        }
    }

    proptest! {
        #[test]
        fn short_and_long_ways_through_a_number_are_equal(
            text in "-?(0|[0-9]{1,18})(\\.[0-9]{0,16})?([eE][+-]?[0-9]{0,3})?[,}x ]?",
        ) {
            prop_assert_eq!(number(text.as_bytes(), 0), long_number(text.as_bytes(), 0));
        }
    }
}
