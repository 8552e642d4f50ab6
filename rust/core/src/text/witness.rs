//! Whether a value is where it belongs: all that came on one partition stays on it.
//!
//! A crowd that is cut in two hides as many as before, but releases less. So it is looked for, and not
//! prevented. Remembered are keyed hashes, in a table of a fixed size in which a new value takes the
//! place of an old one: what is split is seen as soon as it comes on both sides in turn.

use super::plan::Plan;
use super::rows::{Rows, Spot, value};
use crate::column::Role;
use crate::error::Error;
use crate::key::Hasher;
use crate::secret::Secret;

/// Places in the table: a power of two.
const PLACES: usize = 1 << 17;
/// Bits of a place that are the partition's number, counted from 1.
const NUMBER: u64 = 0xFFFF;

/// Remembers which partition values came on.
pub struct Witness {
    hasher: Hasher,
    places: Vec<u64>,
    /// For each attribute how often a value came on another partition than before, and the two of the
    /// last time.
    pub found: Vec<(u64, u32, u32)>,
}

impl Witness {
    pub fn new() -> Result<Self, Error> {
        Ok(Self {
            hasher: Hasher::new(&Secret::random()?),
            places: vec![0; PLACES],
            found: Vec::new(),
        })
    }

    /// Looks at the values of some rows, which came on one partition: at the coarsest level of each.
    pub(super) fn look(&mut self, plan: &Plan, partition: u32, block: &[u8], rows: &Rows) {
        let number = u64::from(partition) + 1;
        if number > NUMBER {
            return;
        }
        self.found.resize(plan.attributes, (0, 0, 0));
        for attribute in 0..plan.attributes {
            for spot in rows.coarsest(plan, attribute) {
                let Some(hash) = self.hash(attribute, *spot, block, &rows.decoded) else {
                    continue;
                };
                let place = &mut self.places[hash as usize & (PLACES - 1)];
                let before = *place;
                *place = hash & !NUMBER | number;
                if before & !NUMBER == hash & !NUMBER && before & NUMBER != number {
                    let found = &mut self.found[attribute];
                    *found = (found.0 + 1, (before & NUMBER) as u32 - 1, partition);
                }
            }
        }
    }

    /// The place is of the low bits, and a mark of the others but those of the partition's number.
    fn hash(&self, attribute: usize, spot: Spot, block: &[u8], decoded: &[u8]) -> Option<u64> {
        let value = value(spot, block, decoded)?;
        let mut hash = [self.hasher.block(value, Role::Attribute)?];
        self.hasher.attributes(&mut hash, Some(&[attribute as u128]));
        Some((hash[0] >> 64) as u64)
    }
}
