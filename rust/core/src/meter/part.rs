//! Some of the users of a period, and what each of them has: small enough to lie in the cache of a core
//! while many releases are taken in.
//!
//! ```text
//! index: a user's tag ─→ number ─→ users: mark, fingerprint
//!                           └───→ words: number and block of values ─→ which of them
//! ```

use super::block::Block;
use super::changed::Changed;
use super::entry::Mark;
use super::growth::most_words;
use super::lines::{Bucket, Release, User, Word, WordLine};

/// Releases that are taken in together. There must be room for as many before.
pub(super) const GROUP: usize = 64;

pub(super) struct Part {
    /// So many first bits are the same of all its users.
    pub(super) depth: u32,
    pub(super) users: Block<User>,
    pub(super) count: usize,
    pub(super) index: Block<Bucket>,
    pub(super) words: Block<WordLine>,
    /// Words that hold something.
    pub(super) live: usize,
}

impl Part {
    pub(super) fn users(&self) -> &[User] {
        &self.users[..self.count]
    }

    pub(super) fn users_mut(&mut self) -> &mut [User] {
        &mut self.users[..self.count]
    }

    pub(super) fn words(&self) -> impl Iterator<Item = Word> {
        self.words.iter().flat_map(WordLine::words)
    }

    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Words that there are places for.
    pub(super) fn places(&self) -> usize {
        self.words.len() * WordLine::WORDS
    }

    /// Takes in releases of its users, at most a group, for which there is room, with the words that make
    /// fingerprints of their values. Gives how many were new.
    #[inline(never)]
    pub(super) fn take(
        &mut self,
        releases: &[Release],
        prints: &[u128; GROUP],
        spread: u64,
        changed: &mut Changed,
    ) -> usize {
        // In short loops, each of which asks for what the next ones need: the CPU looks far ahead in those.
        let mut numbers = [0; GROUP];
        for (release, number) in releases.iter().zip(&mut numbers) {
            *number = self.guess(release.user());
        }
        for (release, number) in releases.iter().zip(&mut numbers) {
            if self.users[usize::from(*number)].mark() != release.user() {
                *number = self.user(release.user());
            }
            if self.users[usize::from(*number)].has_words() {
                self.words.prefetch(self.line(Word::new(*number, release.value()), spread));
            }
        }
        let is_noted = matches!(changed, Changed::Some(_));
        let mut new = 0_usize;
        for ((release, number), print) in releases.iter().zip(numbers).zip(prints) {
            let user = &mut self.users[usize::from(number)];
            let is_new = match user.add(release.value()) {
                Some(is_new) => is_new,
                None => self.add_to_words(number, release.value(), spread),
            };
            let user = &mut self.users[usize::from(number)];
            let before = user.print();
            // A value that was there changes nothing; the CPU cannot guess which was.
            user.set_print(before ^ (print & u128::from(is_new).wrapping_neg()));
            new = new.wrapping_add(usize::from(is_new));
            // Seldom, and not for every new value, which it could not guess either.
            if is_new & (user.has_changed == 0) & is_noted {
                changed.note(user, before);
            }
        }
        new
    }

    /// The number of a user, who is put in if new.
    #[inline(never)]
    fn user(&mut self, mark: Mark) -> u16 {
        let tag = Bucket::tag(mark);
        let mut at = self.home(mark);
        loop {
            let bucket = &self.index[at];
            if let Some(number) = self.number(bucket, tag, mark) {
                return number;
            }
            if bucket.same(0) != 0 {
                return self.put(at, tag, mark);
            }
            at = at.wrapping_add(1) & (self.index.len() - 1);
        }
    }

    #[inline(always)]
    fn number(&self, bucket: &Bucket, tag: u16, mark: Mark) -> Option<u16> {
        let mut same = bucket.same(tag);
        // As a rule there is one, if any.
        while same != 0 {
            let number = bucket.numbers[same.trailing_zeros() as usize / 2 % Bucket::USERS];
            if self.users[usize::from(number)].mark() == mark {
                return Some(number);
            }
            same &= same.wrapping_sub(1) & same.wrapping_sub(2);
        }
        None
    }

    #[inline(always)]
    pub(super) fn home(&self, mark: Mark) -> usize {
        let rest = mark.high.wrapping_shl(self.depth) >> 32;
        (rest.wrapping_mul(self.index.len() as u64) >> 32) as usize
    }

    fn put(&mut self, at: usize, tag: u16, mark: Mark) -> u16 {
        let number = self.count as u16;
        self.index[at].put(tag, number);
        self.users[self.count] = User::new(mark);
        self.count += 1;
        number
    }

    /// A user who is there.
    pub(super) fn find(&mut self, mark: Mark) -> Option<&mut User> {
        let tag = Bucket::tag(mark);
        let mut at = self.home(mark);
        loop {
            let bucket = &self.index[at];
            if let Some(number) = self.number(bucket, tag, mark) {
                return self.users.get_mut(usize::from(number));
            }
            if bucket.same(0) != 0 {
                return None;
            }
            at = (at + 1) % self.index.len();
        }
    }

    /// Tells the CPU that all of it will be used soon: in order, which is what memory is good at.
    pub(super) fn prefetch(&self) {
        (0..self.index.len()).step_by(2).for_each(|at| self.index.prefetch(at));
        (0..self.count).for_each(|at| self.users.prefetch(at));
        (0..self.words.len()).for_each(|at| self.words.prefetch(at));
    }

    /// How many lines that are.
    pub(super) fn lines(&self) -> usize {
        self.index.len() / 2 + self.count + self.words.len()
    }

    /// Lines that there is room for.
    pub(super) fn room(&self) -> usize {
        self.users.len() + self.words.len()
    }

    /// Tells the CPU that a user will be looked for soon.
    #[inline(always)]
    pub(super) fn prefetch_user(&self, mark: Mark) {
        self.index.prefetch(self.home(mark));
    }

    /// The number that a user has as a rule, if they are there. Tells the CPU that the user will be used soon.
    #[inline(always)]
    pub(super) fn guess(&self, mark: Mark) -> u16 {
        let bucket = &self.index[self.home(mark)];
        let same = bucket.same(Bucket::tag(mark));
        let number = bucket.numbers[same.trailing_zeros() as usize / 2 % Bucket::USERS];
        self.users.prefetch(usize::from(number));
        number
    }

    #[inline(always)]
    fn line(&self, word: Word, spread: u64) -> usize {
        (u64::from(word.key()).wrapping_mul(spread) >> 32) as usize & (self.words.len() - 1)
    }

    /// Whether a value was not among those that a user has in words, where it is from now on.
    #[inline(always)]
    fn add_to_words(&mut self, number: u16, value: u32, spread: u64) -> bool {
        let word = Word::new(number, value);
        let is_new = self.add(word, spread) & word.0 as u32 == 0;
        if self.users[usize::from(number)].has_many(is_new) {
            self.give_few(number, spread);
        }
        is_new
    }

    /// Puts all values of a user into words: where there are many, the few beside the user are in the way.
    #[cold]
    fn give_few(&mut self, number: u16, spread: u64) {
        // Where there is no room it is done with another value.
        if self.live + GROUP >= most_words(self.places()) {
            return;
        }
        let before = self.users[usize::from(number)].give_few();
        for value in before.few() {
            self.add(Word::new(number, u32::from(*value)), spread);
        }
    }

    /// Adds a word's values; gives those that were there.
    #[inline(always)]
    pub(super) fn add(&mut self, word: Word, spread: u64) -> u32 {
        let last = self.words.len() - 1;
        let mut at = self.line(word, spread);
        loop {
            if let Some(before) = self.words[at].add(word) {
                self.live = self.live.wrapping_add(usize::from(before.0 == 0));
                return before.0 as u32;
            }
            at = at.wrapping_add(1) & last;
        }
    }
}
