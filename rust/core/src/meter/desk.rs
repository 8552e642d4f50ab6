//! Where releases are taken in by their parts. There are two desks for a period: when somebody looks, each gets half of
//! the parts, and two threads can be at work.

use super::block::Pool;
use super::changed::Changed;
use super::growth::Lack;
use super::lines::Release;
use super::log::Log;
use super::part::{GROUP, Part};
use super::table::Full;
use crate::key::Hasher;
use crate::memory::Budget;

/// Releases of a log that are fetched for one by one.
const FEW: usize = 16;

#[derive(Default)]
pub(super) struct Desk {
    pub(super) pool: Pool,
    pub(super) changed: Changed,
    /// Releases that were new.
    pub(super) pairs: u64,
}

/// Some of the parts and their logs, from this number on.
pub(super) struct Share<'a> {
    pub(super) first: usize,
    pub(super) parts: &'a mut [Part],
    pub(super) logs: &'a mut [Log],
}

impl Desk {
    /// Brings to a part what waits for it. False if the part must be cut in two first, for what is left.
    pub(super) fn take_in(
        &mut self,
        number: usize,
        (part, log): (&mut Part, &mut Log),
        spread: u64,
        hasher: &Hasher,
        budget: &mut Budget,
    ) -> Result<bool, Full> {
        // Many releases come to all lines, few to some.
        if log.waiting().len() > part.lines() {
            part.prefetch();
        }
        let mut prints = [0; GROUP];
        while log.start < log.end {
            match part.lack() {
                None => {}
                Some(Lack::Room) => part.grow(spread, &mut self.pool, budget)?,
                Some(Lack::Cut) => return Ok(false),
            }
            let group = &log.releases[log.start..log.end.min(log.start + GROUP)];
            for (release, print) in group.iter().zip(&mut prints) {
                *print = u128::from(release.value());
            }
            hasher.user_words(&mut prints[..group.len()]);
            self.pairs += part.take(group, &prints, spread, &mut self.changed) as u64;
            log.start += group.len();
        }
        log.clear(number, part, &mut self.pool, budget)?;
        Ok(true)
    }

    /// Brings to some parts what waits for them. Gives those that must be cut in two.
    pub(super) fn take_in_some(
        &mut self,
        numbers: &[u32],
        share: Share,
        spread: u64,
        hasher: &Hasher,
        budget: &mut Budget,
    ) -> Result<Vec<u32>, Full> {
        let mut left = Vec::new();
        for numbers in numbers.chunks(GROUP) {
            share.fetch(numbers);
            for number in numbers {
                let at = *number as usize - share.first;
                let both = (&mut share.parts[at], &mut share.logs[at]);
                let is_done = self.take_in(*number as usize, both, spread, hasher, budget)?;
                share.logs[at].waits = !is_done;
                if !is_done {
                    left.push(*number);
                }
            }
        }
        Ok(left)
    }
}

impl Share<'_> {
    /// Tells the CPU what parts will need that only few releases wait for.
    fn fetch(&self, numbers: &[u32]) {
        let each = |fetch: &dyn Fn(&Part, &Release)| {
            for number in numbers {
                let at = *number as usize - self.first;
                let (part, log) = (&self.parts[at], &self.logs[at]);
                if log.waiting().len() <= FEW {
                    log.waiting().iter().for_each(|release| fetch(part, release));
                }
            }
        };
        each(&|part, release| part.prefetch_user(release.user()));
        each(&|part, release| _ = part.guess(release.user()));
    }
}
