//! Times in text to nanoseconds, exactly: numbers are read as decimals, never through a float.

use super::block::Block;

const NANOS: i128 = 1_000_000_000;
/// The most digits a 64-bit number of nanoseconds has.
const MOST_DIGITS: i64 = 19;
const TENS: [i64; 19] = {
    let mut tens = [1; 19];
    let mut i = 1;
    while i < tens.len() {
        tens[i] = tens[i - 1] * 10;
        i += 1;
    }
    tens
};

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeFormat {
    /// A number since 1970 UTC, in this unit.
    Seconds,
    Millis,
    Micros,
    Nanos,
    /// ISO 8601: `2024-02-29`, `2024-02-29T12:30:00.5+01:00`. Without a zone it is UTC.
    Iso,
}

impl TimeFormat {
    pub fn name(self) -> &'static str {
        match self {
            TimeFormat::Seconds => "s",
            TimeFormat::Millis => "ms",
            TimeFormat::Micros => "us",
            TimeFormat::Nanos => "ns",
            TimeFormat::Iso => "iso",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        use TimeFormat::{Iso, Micros, Millis, Nanos, Seconds};
        [Seconds, Millis, Micros, Nanos, Iso].into_iter().find(|format| format.name() == name)
    }

    /// The format of one value: ISO 8601 if it looks like a date, else by magnitude. Less than 1e11
    /// is seconds, 1e14 milliseconds, 1e17 microseconds, anything more nanoseconds: each unit from
    /// 1973 (seconds: from the beginning) to the year 5138.
    pub fn detect(text: &[u8]) -> Option<Self> {
        if let Some([_, _, _, _, b'-', _, _, b'-', _, _]) = text.first_chunk() {
            let digits = Block::at(text, 0).digits();
            return (digits & 0b11_0110_1111 == 0b11_0110_1111).then_some(TimeFormat::Iso);
        }
        let number = Decimal::read(text)?;
        Some(match number.whole_digits() {
            ..=11 => TimeFormat::Seconds,
            12..=14 => TimeFormat::Millis,
            15..=17 => TimeFormat::Micros,
            _ => TimeFormat::Nanos,
        })
    }

    /// Whether a time could have been taken for one of this format by [`detect`](Self::detect): not
    /// if it lies before 1973, where a number is one of a coarser unit. Those past the other end of
    /// a unit do not fit into 64 bits.
    #[inline(always)]
    pub fn is_likely(self, nanos: i64) -> bool {
        const FIRST: u64 = 100_000_000_000_000_000;
        matches!(self, TimeFormat::Seconds | TimeFormat::Iso) || nanos.unsigned_abs() >= FIRST
    }

    /// Nanoseconds since 1970 UTC. Digits past a nanosecond are cut off towards the past.
    ///
    /// A number may have a sign, decimals and an exponent, with digits on both sides of the point.
    /// `None` if the text is no such time or lies outside of the 64-bit nanoseconds (1677 to 2262;
    /// `i64::MIN` is never returned).
    #[inline(always)]
    pub fn parse(self, text: &[u8]) -> Option<i64> {
        // The power of ten from each unit to nanoseconds; a table is quicker than branches.
        match [9, 6, 3, 0].get(self as usize) {
            Some(power) => short_number(text, *power).or_else(|| long_number(text, *power)),
            None => iso(text),
        }
    }
}

/// A number of 9 to 16 bytes with nothing but a point in it, as most are: the first eight digits, then
/// all others at once. `None` where a longer way must decide.
#[inline(always)]
fn short_number(text: &[u8], power: u32) -> Option<i64> {
    let count = text.len().wrapping_sub(8) as u32;
    if !(9..=16).contains(&text.len()) {
        return None;
    }
    let (first, last) = (values(*text.first_chunk()?), values(*text.last_chunk()?));
    if !are_digits(first) {
        return None;
    }
    let others = last >> (8 * (8 - count));
    let strange = no_digits(others);
    let (others, count, decimals) = if strange == 0 {
        (others, count, 0)
    } else {
        // All bits below the point's byte, and the digits behind it moved up to them.
        let place = strange.trailing_zeros() / 8;
        let before = (1_u64 << (8 * place)) - 1;
        let closed = (others & before) | (others >> 8 & !before);
        let is_point = others >> (8 * place) & 0xFF == u64::from(b'.' ^ b'0');
        if !is_point || place + 1 == count || !are_digits(closed) {
            return None;
        }
        (closed, count - 1, count - 1 - place)
    };
    // Aligned to the end, as if zeros came before. Sixteen digits fit.
    let others = eight_digits(others << (8 * (8 - count)));
    let number = eight_digits(first) as i64 * TENS[count as usize] + others as i64;
    number.checked_mul(TENS[power.checked_sub(decimals)? as usize])
}

/// Any other number.
#[inline(never)]
fn long_number(text: &[u8], power: u32) -> Option<i64> {
    medium_number(text, power).or_else(|| Decimal::read(text)?.floor(power))
}

/// A number of 8 digits or more before the point, and up to 8 behind it.
fn medium_number(text: &[u8], power: u32) -> Option<i64> {
    let (whole, end) = leading_digits(text)?;
    let scale = |number: u64, power: u32| {
        i64::try_from(number).ok()?.checked_mul(*TENS.get(power as usize)?)
    };
    let nanos = scale(whole, power)?;
    let [b'.', behind @ ..] = &text[end..] else {
        return (end == text.len()).then_some(nanos);
    };
    let count = behind.len() as u32;
    if !(1..=8).contains(&count) {
        return None;
    }
    // The last eight bytes, of which those before the decimals become zeros.
    let before = 8 * (8 - count);
    let decimals = values(*text.last_chunk()?) >> before << before;
    let decimals = if are_digits(decimals) { eight_digits(decimals) } else { return None };
    nanos.checked_add(scale(decimals, power.checked_sub(count)?)?)
}

/// The digits that the text begins with, eight at least: their number, and where they end.
#[inline(always)]
fn leading_digits(text: &[u8]) -> Option<(u64, usize)> {
    let first = values(*text.first_chunk()?);
    if !are_digits(first) {
        return None;
    }
    let (mut number, mut end) = (eight_digits(first), 8);
    if let Some(next) = text.get(8..).and_then(<[u8]>::first_chunk)
        && are_digits(values(*next))
    {
        (number, end) = (number * 100_000_000 + eight_digits(values(*next)), 16);
    }
    while let Some(digit @ b'0'..=b'9') = text.get(end) {
        if end == MOST_DIGITS as usize {
            return None;
        }
        // Nineteen digits at most: less than 10^19, which fits, so that nothing wraps.
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        end += 1;
    }
    Some((number, end))
}

/// What each byte is worth if it is a digit.
#[inline(always)]
fn values(bytes: [u8; 8]) -> u64 {
    u64::from_le_bytes(bytes) ^ u64::from_ne_bytes([b'0'; 8])
}

/// The high bit of each value that is not below ten. Such a one may carry into the next: only the
/// lowest bit is sure.
#[inline(always)]
fn no_digits(values: u64) -> u64 {
    (values.wrapping_add(u64::from_ne_bytes([0x76; 8])) | values) & u64::from_ne_bytes([0x80; 8])
}

#[inline(always)]
fn are_digits(values: u64) -> bool {
    no_digits(values) == 0
}

/// The number that eight digits make, the first in the lowest byte. First each two become a number
/// below 100, in every other byte. Then the first and third pair, the second and fourth are weighted
/// by one multiplication each; their sums meet in the high half, and what wraps lies above it.
#[inline(always)]
fn eight_digits(values: u64) -> u64 {
    const PAIRS: u64 = 0x0000_00FF_0000_00FF;
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let odd = (pairs & PAIRS).wrapping_mul(1_000_000 << 32 | 100);
    let even = (pairs >> 16 & PAIRS).wrapping_mul(10_000 << 32 | 1);
    odd.wrapping_add(even) >> 32
}

/// A decimal number as it is written: the digits of `whole` and `decimals`, times ten to `exponent`.
struct Decimal<'a> {
    is_negative: bool,
    whole: &'a [u8],
    decimals: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    fn read(text: &'a [u8]) -> Option<Self> {
        let (is_negative, text) = sign(text);
        let (whole, text) = digits(text)?;
        let (decimals, text) = match text {
            [b'.', text @ ..] => digits(text)?,
            text => (&[][..], text),
        };
        let exponent = match text {
            [] => 0,
            [b'e' | b'E', text @ ..] => {
                let (is_negative, text) = sign(text);
                let (exponent, []) = digits(text)? else { return None };
                // Far past anything that lengths of text could balance.
                let add = |sum: i64, digit: &u8| (sum * 10 + i64::from(digit - b'0')).min(1 << 56);
                let size = exponent.iter().fold(0, add);
                if is_negative { -size } else { size }
            }
            _ => return None,
        };
        Some(Self { is_negative, whole, decimals, exponent })
    }

    /// The digits without leading zeros.
    fn digits(&self) -> impl Iterator<Item = i64> {
        let all = self.whole.iter().chain(self.decimals);
        all.skip_while(|digit| **digit == b'0').map(|digit| i64::from(digit - b'0'))
    }

    /// How many digits there are before the point once the exponent is applied; 0 or less below 1.
    fn whole_digits(&self) -> i64 {
        match self.digits().count() {
            0 => 0,
            count => count as i64 - self.decimals.len() as i64 + self.exponent,
        }
    }

    /// The number times ten to `power`, rounded down.
    fn floor(&self, power: u32) -> Option<i64> {
        let count = self.whole_digits() + i64::from(power);
        if count > MOST_DIGITS {
            return None;
        }
        let mut digits = self.digits();
        let mut size: i128 = 0;
        for _ in 0..count {
            size = size * 10 + i128::from(digits.next().unwrap_or(0));
        }
        if self.is_negative {
            size = -size - i128::from(digits.any(|digit| digit != 0));
        }
        in_range(size)
    }
}

fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', text @ ..] => (true, text),
        [b'+', text @ ..] => (false, text),
        text => (false, text),
    }
}

/// One digit at least, and what follows.
fn digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| text.split_at(count))
}

/// `i64::MIN` is kept free: the gate takes it for "never".
fn in_range(nanos: i128) -> Option<i64> {
    i64::try_from(nanos).ok().filter(|nanos| *nanos != i64::MIN)
}

/// `YYYY-MM-DD`, then `T` or a space and `hh:mm`, `:ss`, a fraction, a zone. A zone needs a time.
#[inline(never)]
fn iso(text: &[u8]) -> Option<i64> {
    let (date, text) = text.split_first_chunk()?;
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = *date else { return None };
    let year = two([y0, y1])? * 100 + two([y2, y3])?;
    let day = days(year, two([m0, m1])?, two([d0, d1])?)?;
    let (second, nanos) = match text {
        [] => (0, 0),
        [b'T' | b' ', text @ ..] => clock(text)?,
        _ => return None,
    };
    in_range(i128::from(day * 86_400 + second) * NANOS + i128::from(nanos))
}

/// Seconds of a time of day less its zone, and nanoseconds.
fn clock(text: &[u8]) -> Option<(i64, i64)> {
    let (minutes, text) = text.split_first_chunk()?;
    let [h0, h1, b':', m0, m1] = *minutes else { return None };
    let (hour, minute) = (two([h0, h1])?, two([m0, m1])?);
    let (second, nanos, text) = match text {
        [b':', s0, s1, b'.' | b',', text @ ..] => {
            let (decimals, text) = digits(text)?;
            (two([*s0, *s1])?, billionths(decimals), text)
        }
        [b':', s0, s1, text @ ..] => (two([*s0, *s1])?, 0, text),
        text => (0, 0, text),
    };
    let is_valid = hour < 24 && minute < 60 && second < 60;
    is_valid.then_some(())?;
    Some((hour * 3600 + minute * 60 + second - zone(text)?, nanos))
}

/// Seconds ahead of UTC.
pub(super) fn zone(text: &[u8]) -> Option<i64> {
    let (ahead, hour, minute) = match *text {
        [] | [b'Z'] => return Some(0),
        [sign @ (b'+' | b'-'), h0, h1] => (sign == b'+', two([h0, h1])?, 0),
        [sign @ (b'+' | b'-'), h0, h1, m0, m1] | [sign @ (b'+' | b'-'), h0, h1, b':', m0, m1] => {
            (sign == b'+', two([h0, h1])?, two([m0, m1])?)
        }
        _ => return None,
    };
    let seconds = hour * 3600 + minute * 60;
    (hour < 24 && minute < 60).then_some(if ahead { seconds } else { -seconds })
}

pub(super) fn two(digits: [u8; 2]) -> Option<i64> {
    let is_number = digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| i64::from(digits[0] - b'0') * 10 + i64::from(digits[1] - b'0'))
}

fn billionths(decimals: &[u8]) -> i64 {
    let padded = decimals.iter().copied().chain(std::iter::repeat(b'0')).take(9);
    padded.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
}

/// Days since 1970 of a date in the Gregorian calendar. Years are counted from March, so that the
/// day that some have more is their last.
pub(super) fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(is_leap),
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=longest).contains(&day) {
        return None;
    }
    let year = year - i64::from(month <= 2);
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    /// From 1 March of the year 0 to 1 January 1970.
    const EPOCH: i64 = 719_468;
    Some(year * 365 + leap_days + day_of_year - EPOCH)
}

#[cfg(test)]
mod tests;
