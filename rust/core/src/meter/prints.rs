//! The fingerprints of many users, near to those that stand near in the table of classes: so most of that is found in
//! the cache.

use super::entry::Mark;
use super::part::Part;
use std::collections::HashSet;

/// Groups, by the half of the classes and the first bits within it.
const GROUPS: usize = 1 << (1 + FIRST_BITS);
const FIRST_BITS: u32 = 7;

#[derive(Default)]
pub(super) struct Prints {
    marks: Vec<Mark>,
    /// Where each group ends.
    ends: Vec<usize>,
}

/// The half of the classes that a fingerprint is of: by a bit that nothing else is told by within it.
#[inline(always)]
pub(super) fn half_of(print: Mark) -> usize {
    (print.low >> 1 & 1) as usize
}

#[inline(always)]
fn group_of(print: Mark) -> usize {
    half_of(print) << FIRST_BITS | (print.high >> (64 - FIRST_BITS)) as usize
}

impl Prints {
    /// Bytes for each user.
    pub(super) const EACH: usize = size_of::<Mark>();

    /// Takes those of all users of some parts, of whom nobody has changed from now on.
    pub(super) fn take(&mut self, parts: &mut [Part]) {
        let mut places = [0; GROUPS];
        for user in parts.iter().flat_map(Part::users) {
            places[group_of(Mark::new(user.print()))] += 1;
        }
        let mut count = 0;
        for place in &mut places {
            (*place, count) = (count, count + *place);
        }
        self.marks.resize(count, Mark::default());
        for user in parts.iter_mut().flat_map(Part::users_mut) {
            user.has_changed = 0;
            let print = Mark::new(user.print());
            let place = &mut places[group_of(print)];
            self.marks[*place] = print;
            *place += 1;
        }
        self.ends.clear();
        self.ends.extend(places);
    }

    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// About how many classes these and others are in, of one half of them. Fingerprints are as good as random: there are
    /// as many to each group as to the first.
    pub(super) fn classes_with(&self, other: &Self, half: usize) -> usize {
        let first = [self, other].into_iter().filter_map(|prints| prints.of_half(half).next());
        let found: HashSet<&Mark> = first.flatten().collect();
        found.len() << FIRST_BITS
    }

    /// Those of one half of the classes, group by group.
    pub(super) fn of_half(&self, half: usize) -> impl Iterator<Item = &[Mark]> {
        (half << FIRST_BITS..(half + 1) << FIRST_BITS).map(|group| {
            let end = |group: usize| self.ends.get(group).copied().unwrap_or_default();
            &self.marks[group.checked_sub(1).map_or(0, end)..end(group)]
        })
    }
}
