//! How parts grow, and are cut in two when they are as large as they get.

use super::block::Pool;
use super::entry::Mark;
use super::lines::{Bucket, USER_BITS, User, WordLine};
use super::part::{GROUP, Part};
use super::table::Full;
use crate::memory::Budget;

/// Users and words of the smallest part.
const FEWEST_USERS: usize = 128;
const FEWEST_WORDS: usize = 256;
/// Users and words of the largest part; with more it is cut in two. Where very few users have all those
/// words, that would not help.
const MOST_USERS: usize = 1 << USER_BITS;
const MOST_WORDS: usize = 1 << 13;
const VERY_FEW: usize = 8;

/// What there was no room for.
pub(super) enum Lack {
    /// There is more to be had.
    Room,
    /// The part is as large as they get.
    Cut,
}

impl Part {
    pub(super) fn new(depth: u32, pool: &mut Pool, budget: &mut Budget) -> Result<Self, Full> {
        Self::of_size(depth, (FEWEST_USERS, FEWEST_WORDS), pool, budget)
    }

    fn of_size(
        depth: u32,
        (users, words): (usize, usize),
        pool: &mut Pool,
        budget: &mut Budget,
    ) -> Result<Self, Full> {
        let mut part = Self {
            depth,
            users: pool.take(users, budget)?,
            count: 0,
            index: pool.take(buckets_for(users), budget)?,
            words: pool.take(words / WordLine::WORDS, budget)?,
            live: 0,
        };
        part.index.fill(Bucket::EMPTY);
        part.words.fill(WordLine::EMPTY);
        Ok(part)
    }

    /// What a whole group of releases would lack.
    #[inline(always)]
    pub(super) fn lack(&self) -> Option<Lack> {
        let lacks_users = self.count + GROUP > self.users.len();
        let lacks_words = self.live + GROUP > most_words(self.places());
        if !lacks_users && !lacks_words {
            return None;
        }
        let is_whole = lacks_users && self.users.len() == MOST_USERS
            || lacks_words && self.places() >= MOST_WORDS && self.count > VERY_FEW;
        Some(if is_whole { Lack::Cut } else { Lack::Room })
    }

    /// Makes room for a group of releases; the part is not as large as they get.
    #[cold]
    pub(super) fn grow(
        &mut self,
        spread: u64,
        pool: &mut Pool,
        budget: &mut Budget,
    ) -> Result<(), Full> {
        if self.count + GROUP > self.users.len() {
            let mut users = pool.take::<User>(self.users.len() * 2, budget)?;
            users[..self.count].copy_from_slice(self.users());
            let index = pool.take(buckets_for(users.len()), budget)?;
            pool.give(std::mem::replace(&mut self.users, users));
            pool.give(std::mem::replace(&mut self.index, index));
            self.lead();
        }
        if self.live + GROUP > most_words(self.places()) {
            // Small ones at once to four times the size, which is still little: each time all words are put in anew.
            let times = if self.places() < MOST_WORDS / 4 { 4 } else { 2 };
            let mut words = pool.take(self.words.len() * times, budget)?;
            words.fill(WordLine::EMPTY);
            let before = std::mem::replace(&mut self.words, words);
            self.live = 0;
            before.iter().flat_map(WordLine::words).for_each(|word| _ = self.add(word, spread));
            pool.give(before);
        }
        Ok(())
    }

    /// Makes the index anew.
    fn lead(&mut self) {
        self.index.fill(Bucket::EMPTY);
        for number in 0..self.count {
            let mark = self.users[number].mark();
            let mut at = self.home(mark);
            while !self.index[at].put(Bucket::tag(mark), number as u16) {
                at = (at + 1) % self.index.len();
            }
        }
    }

    /// Keeps the users whose next bit is 0; the others are in the part that it gives.
    #[cold]
    pub(super) fn cut(
        &mut self,
        spread: u64,
        pool: &mut Pool,
        budget: &mut Budget,
    ) -> Result<Self, Full> {
        let mut halves = [0; MOST_USERS];
        let (mut users, mut words) = ([0; 2], [0; 2]);
        for (user, half) in self.users().iter().zip(&mut halves) {
            *half = usize::from(is_of_latter(user.mark(), self.depth));
            users[*half] += 1;
        }
        self.words().for_each(|word| words[halves[usize::from(word.user())]] += 1);
        let mut new = |half: usize| {
            let size = (size_for(users[half], FEWEST_USERS), size_for(words[half], FEWEST_WORDS));
            Self::of_size(self.depth + 1, size, pool, budget)
        };
        let mut parts = [new(0)?, new(1)?];
        let mut numbers = [0; MOST_USERS];
        for ((user, half), number) in self.users().iter().zip(halves).zip(&mut numbers) {
            let part = &mut parts[half];
            part.users[part.count] = *user;
            *number = part.count as u16;
            part.count += 1;
        }
        parts.iter_mut().for_each(Self::lead);
        for word in self.words() {
            let user = usize::from(word.user());
            parts[halves[user]].add(word.of(numbers[user]), spread);
        }
        let [first, second] = parts;
        let whole = std::mem::replace(self, first);
        pool.give(whole.users);
        pool.give(whole.index);
        pool.give(whole.words);
        Ok(second)
    }
}

/// Whether a user is in the latter of the two parts that one of this depth is cut into.
pub(super) fn is_of_latter(mark: Mark, depth: u32) -> bool {
    mark.high << depth >> 63 == 1
}

/// Places for so many, with room to grow.
fn size_for(count: usize, least: usize) -> usize {
    (count / 2 * 3 + 2 * GROUP).next_power_of_two().max(least)
}

/// So that at most half of the places lead to someone.
fn buckets_for(users: usize) -> usize {
    2 * users / Bucket::USERS
}

/// With more, too many lines would be full.
pub(super) fn most_words(places: usize) -> usize {
    places / 16 * 13
}
