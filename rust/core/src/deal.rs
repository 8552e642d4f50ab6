//! Which shard an attribute belongs to.
//!
//! Eight bits of an attribute's hash select it. Dealt out by these alone, shards have as many attributes, but not
//! as many observations: one attribute can have a tenth of all. So before a gate with several threads counts
//! anybody, it looks at which selectors come how often, and deals them out by that.

use crate::slot::Key;
use std::cmp::Reverse;

/// As many as 8 bits can tell apart.
pub(crate) const SELECTORS: usize = 256;

/// For each selector its shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deal {
    shards: usize,
    shard_of: [u8; SELECTORS],
}

impl Deal {
    /// As many selectors to each.
    pub(crate) fn even(shards: usize) -> Self {
        let shard_of = std::array::from_fn(|selector| (selector * shards / SELECTORS) as u8);
        Self { shards, shard_of }
    }

    /// Selectors that came so often, to shards that have about as much to do.
    pub(crate) fn by(counts: &[u32; SELECTORS], shards: usize) -> Self {
        let mut dealt = Self::even(shards);
        let mut loads = vec![(0_u64, 0_u32); shards];
        let mut selectors: Vec<usize> = (0..SELECTORS).collect();
        selectors.sort_by_key(|selector| Reverse(counts[*selector]));
        for selector in selectors {
            // Of shards with as much to do, the one with fewer selectors.
            let lightest = (0..shards).min_by_key(|shard| loads[*shard]).unwrap_or(0);
            loads[lightest].0 += u64::from(counts[selector]);
            loads[lightest].1 += 1;
            dealt.shard_of[selector] = lightest as u8;
        }
        dealt
    }

    /// As these shards have it, each by its keys; `None` if two have a selector in common.
    pub(crate) fn found<K: Iterator<Item = Key>>(
        shards: impl ExactSizeIterator<Item = K>,
    ) -> Option<Self> {
        let mut dealt = Self::even(shards.len());
        let mut is_found = [false; SELECTORS];
        for (number, keys) in shards.enumerate() {
            for key in keys {
                let selector = key.selector();
                if !is_found[selector] {
                    is_found[selector] = true;
                    dealt.shard_of[selector] = number as u8;
                } else if dealt.shard(key) != number {
                    return None;
                }
            }
        }
        Some(dealt)
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards
    }

    #[inline(always)]
    pub(crate) fn shard(&self, key: Key) -> usize {
        usize::from(self.shard_of[key.selector()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(selector: usize) -> Key {
        let hash = (selector as u128) << 24;
        Key::new(hash, hash)
    }

    fn loads(deal: &Deal, counts: &[u32; SELECTORS]) -> Vec<u32> {
        let mut loads = vec![0; deal.shards()];
        for (selector, count) in counts.iter().enumerate() {
            loads[deal.shard(key(selector))] += count;
        }
        loads
    }

    #[test]
    fn each_shard_gets_about_as_much() {
        let mut counts: [u32; SELECTORS] =
            std::array::from_fn(|selector| 10_000 / (selector as u32 + 1));
        counts[17] = 6_000;
        for shards in 1..5 {
            let (dealt, even) = (Deal::by(&counts, shards), Deal::even(shards));
            let total: u32 = counts.iter().sum();
            let most = |deal| loads(deal, &counts).into_iter().max().unwrap();
            assert_eq!(loads(&dealt, &counts).iter().sum::<u32>(), total);
            assert!(most(&dealt) <= total / shards as u32 * 101 / 100 + 1, "{shards}");
            assert!(shards == 1 || most(&even) > most(&dealt));
        }
        assert_eq!(loads(&Deal::by(&[0; SELECTORS], 64), &[1; SELECTORS]), [4; 64]);
    }

    #[test]
    fn what_is_there_tells_how_it_was_dealt() {
        let counts = std::array::from_fn(|selector| selector as u32 * 7 % 31);
        let dealt = Deal::by(&counts, 3);
        let keys_of = |shard| {
            let dealt = &dealt;
            (0..SELECTORS).map(key).filter(move |key| dealt.shard(*key) == shard)
        };
        assert_eq!(Deal::found((0..3).map(keys_of)), Some(dealt.clone()));
        assert_eq!(Deal::found((0..2).map(|_| [key(5)].into_iter())), None);
    }
}
