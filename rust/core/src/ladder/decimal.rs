//! Decimal numbers, exactly: a bin's edge is where a reader sees it, not where a float puts it.

/// `digits` x 10^-`scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    pub(super) digits: i128,
    pub(super) scale: i32,
}

/// Larger exponents are those of no number that anyone counts in.
const MOST_EXPONENT: i32 = 5_000;

impl Decimal {
    /// Reads what JSON and CSV have for a number: `-12`, `0.50`, `1e3`. `None` for anything else and
    /// for more digits than 128 bits hold.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let (negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (number, exponent) = match rest.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (&rest[..at], exponent(&rest[at + 1..])?),
            None => (rest, 0),
        };
        let mut digits: i128 = 0;
        let mut scale = 0;
        let mut seen = 0;
        let mut is_past_point = false;
        for byte in number {
            match byte {
                b'.' if !is_past_point => is_past_point = true,
                b'0'..=b'9' => {
                    digits = digits.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                    scale += i32::from(is_past_point);
                    seen += 1;
                }
                _ => return None,
            }
        }
        // A digit on each side of the point.
        if seen == 0 || number.first() == Some(&b'.') || number.last() == Some(&b'.') {
            return None;
        }
        Some(Self { digits: if negative { -digits } else { digits }, scale: scale - exponent })
    }

    /// The number of whole units in it, rounded towards the past; a unit is `width` x 10^-`scale`.
    pub(super) fn units(self, width: i128, scale: i32) -> Option<i128> {
        let shift = scale - self.scale;
        let power = 10_i128.checked_pow(shift.unsigned_abs());
        if shift >= 0 {
            if self.digits == 0 {
                return Some(0);
            }
            return Some(self.digits.checked_mul(power?)?.div_euclid(width));
        }
        match power.and_then(|power| power.checked_mul(width)) {
            Some(unit) => Some(self.digits.div_euclid(unit)),
            // A unit of more digits than the number has.
            None => Some(if self.digits < 0 { -1 } else { 0 }),
        }
    }

    /// Appends it as people write it: no zeros that say nothing, no exponent.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let (mut digits, mut scale) = (self.digits.unsigned_abs(), self.scale.max(0) as usize);
        while scale > 0 && digits.is_multiple_of(10) {
            digits /= 10;
            scale -= 1;
        }
        let text = format!("{digits:0width$}", width = scale + 1);
        let (whole, fraction) = text.split_at(text.len() - scale);
        if self.digits < 0 {
            out.push(b'-');
        }
        out.extend_from_slice(whole.as_bytes());
        if !fraction.is_empty() {
            out.push(b'.');
            out.extend_from_slice(fraction.as_bytes());
        }
    }
}

fn exponent(text: &[u8]) -> Option<i32> {
    let number: i32 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (-MOST_EXPONENT..=MOST_EXPONENT).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        Decimal::read(text.as_bytes()).unwrap().write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_in_one_way() {
        assert_eq!(written("-0.50"), "-0.5");
        assert_eq!(written("10"), "10");
        assert_eq!(written("0.00"), "0");
        assert_eq!(written("125e-2"), "1.25");
        for text in ["", "-", ".", "1.", ".5", "1e", "0x1", "1 ", "nan", "1e99999", "--1"] {
            assert_eq!(Decimal::read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn units_are_whole_and_rounded_down() {
        let units = |text: &str, width, scale| {
            Decimal::read(text.as_bytes()).and_then(|number| number.units(width, scale))
        };
        assert_eq!(units("0.3", 1, 1), Some(3));
        assert_eq!(units("-0.1", 1, 0), Some(-1));
        assert_eq!(units("-10", 10, 0), Some(-1));
        assert_eq!(units("1e-300", 10, 0), Some(0));
        assert_eq!(units("-1e-300", 10, 0), Some(-1));
        assert_eq!(units("1e300", 10, 0), None);
        assert_eq!(units("0e300", 10, 0), Some(0));
    }
}
