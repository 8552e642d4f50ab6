//! Where a user stands in a log.

use crate::slab::Entry;

/// Where the entry of a user is. Eight are looked at together: to end at each would take twice as long.
#[inline(always)]
pub(super) fn place_of(user: u64, entries: &[Entry]) -> Option<usize> {
    let position = |some: &[Entry]| some.iter().position(|entry| entry.user == user);
    let (eights, rest) = entries.as_chunks::<8>();
    for (number, eight) in eights.iter().enumerate() {
        if may_have(user, eight)
            && let Some(at) = position(eight)
        {
            return Some(number.wrapping_mul(8).wrapping_add(at));
        }
    }
    position(rest).map(|at| entries.len() - rest.len() + at)
}

/// False where none is the user's entry; true where one is, and next to never otherwise.
#[inline(always)]
fn may_have(user: u64, entries: &[Entry; 8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            _mm_castsi128_pd, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_pd, _mm_or_si128,
            _mm_set1_epi64x, _mm_setzero_si128,
        };
        // SAFETY: SSE2 is part of x86_64, and sixteen bytes are read of an entry, which has as many.
        unsafe {
            let wanted = _mm_set1_epi64x(user as i64);
            let same = entries.iter().fold(_mm_setzero_si128(), |same, entry| {
                let entry = _mm_loadu_si128((&raw const *entry).cast());
                _mm_or_si128(same, _mm_cmpeq_epi32(entry, wanted))
            });
            // The high half of the user, and of the time, which is of no interest.
            _mm_movemask_pd(_mm_castsi128_pd(same)) & 1 != 0
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    entries.iter().fold(false, |has, entry| has | (entry.user == user))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_where_it_stands_and_nobody_else_is() {
        // Half of the bits of each, in all ways.
        let halves = [0, 1, 7, 1 << 31, u64::from(u32::MAX)];
        let users = halves.iter().flat_map(|high| halves.map(|low| high << 32 | low));
        let users: Vec<u64> = users.collect();
        let entries: Vec<Entry> = users.iter().map(|user| Entry { user: *user, time: 7 }).collect();
        for user in &users {
            for from in 0..entries.len() {
                for to in from..=entries.len() {
                    let wanted = entries[from..to].iter().position(|entry| entry.user == *user);
                    assert_eq!(place_of(*user, &entries[from..to]), wanted);
                }
            }
        }
        let doubled = [entries.clone(), entries].concat();
        assert!(users.iter().zip(0..).all(|(user, at)| place_of(*user, &doubled) == Some(at)));
    }
}
