//! Maps by words that an operator wrote down: rules and tables.
//!
//! Nobody can flood them. What comes from outside is only looked up, never put in, and a look takes as
//! long as the longest run of words that are in. So the hash need not be a keyed one, which took a
//! quarter of the time of three levels.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(super) type Words<T> = HashMap<Box<[u8]>, T, BuildHasherDefault<WordHasher>>;

/// Eight bytes at a time, each folded in by a multiplication.
#[derive(Default)]
pub(super) struct WordHasher(u64);

const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

impl WordHasher {
    #[inline(always)]
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word).wrapping_mul(u128::from(ODD));
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }
}

impl Hasher for WordHasher {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            self.fold(u64::from_le_bytes(*chunk));
        }
        let tail = rest.iter().rev().fold(0_u64, |tail, byte| tail << 8 | u64::from(*byte));
        // The length keeps words apart that differ in zeros only; it is never zero with this bit.
        self.fold(tail ^ (bytes.len() as u64 | 1 << 63).rotate_left(7));
    }

    /// Of a slice its length comes first, which is in already.
    #[inline(always)]
    fn write_usize(&mut self, _: usize) {}

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The hash of a word.
#[inline(always)]
pub(super) fn hash(word: &[u8]) -> u64 {
    let mut hasher = WordHasher::default();
    hasher.write(word);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_spread() {
        let words: Vec<Box<[u8]>> =
            (0..100_000).map(|n| format!("site{n}.example").into_bytes().into()).collect();
        // Both ends are used: for the place in a map, and to tell words apart there.
        for shift in [0, 47] {
            let mut counts = vec![0; 1 << 17];
            words.iter().for_each(|word| counts[(hash(word) >> shift) as usize & 0x1FFFF] += 1);
            assert!(counts.iter().max() < Some(&10));
        }
        let mut map: Words<usize> = Words::default();
        map.extend(words.iter().cloned().zip(0..));
        assert_eq!(map.get(&b"site77.example"[..]), Some(&77));
        assert_eq!(map.len(), words.len());
    }
}
