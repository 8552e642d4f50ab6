//! Numbers in bins of equal width: `37` → `[30,40)` → `[0,100)`.

use super::Labels;
use super::decimal::Decimal;
use crate::error::Error;

/// Bins that begin at zero and hold their lower edge, not the upper one.
#[derive(Debug)]
pub struct Bins {
    /// In units of 10^-`scale`, each a multiple of the one before.
    widths: Vec<i128>,
    scale: i32,
}

/// So many digits leave room for the arithmetic.
const MOST_DIGITS: i32 = 18;

impl Bins {
    /// Widths as they are written, finest first; each must be a multiple of the one before, or bins
    /// would lie across each other.
    pub fn new(widths: &[String]) -> Result<Self, Error> {
        let refused = |got: &str| Error::Setting {
            parameter: "bins",
            rule: "expected widths above 0, finest first, each a multiple of the one before"
                .to_owned(),
            got: got.to_owned(),
        };
        let limit = 10_i128.pow(MOST_DIGITS as u32);
        let mut read = Vec::new();
        for width in widths {
            let number = Decimal::read(width.as_bytes()).ok_or_else(|| refused(width))?;
            let is_usual = (-MOST_DIGITS..=MOST_DIGITS).contains(&number.scale);
            if !is_usual || !(1..limit).contains(&number.digits) {
                return Err(refused(width));
            }
            read.push(number);
        }
        let scale = read.iter().map(|number| number.scale).max().unwrap_or(0).max(0);
        let mut bins = Self { widths: Vec::new(), scale };
        for (number, width) in read.iter().zip(widths) {
            let power = 10_i128.checked_pow((scale - number.scale).unsigned_abs());
            let scaled = power.and_then(|power| number.digits.checked_mul(power));
            let scaled = scaled.filter(|scaled| *scaled < limit * limit);
            let scaled = scaled.ok_or_else(|| refused(width))?;
            if bins.widths.last().is_some_and(|finer| scaled <= *finer || scaled % finer != 0) {
                return Err(refused(width));
            }
            bins.widths.push(scaled);
        }
        if bins.widths.is_empty() {
            return Err(refused("none"));
        }
        Ok(bins)
    }

    pub(super) fn levels(&self) -> usize {
        self.widths.len()
    }

    pub(super) fn climb(&self, number: &[u8], labels: &mut Labels) {
        let finest = self.widths[0];
        let units = Decimal::read(number).and_then(|number| number.units(finest, self.scale));
        for width in &self.widths {
            // From the finest bin, so that a coarser one is a function of it.
            let bin = units.map(|units| units.div_euclid(width / finest));
            let edges = bin.and_then(|bin| {
                let lower = bin.checked_mul(*width)?;
                Some((lower, lower.checked_add(*width)?))
            });
            let Some((lower, upper)) = edges else {
                labels.miss(1);
                continue;
            };
            labels.write(|text| {
                text.push(b'[');
                Decimal { digits: lower, scale: self.scale }.write(text);
                text.push(b',');
                Decimal { digits: upper, scale: self.scale }.write(text);
                text.push(b')');
            });
        }
    }
}
