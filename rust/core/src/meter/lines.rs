//! What stands in a part: releases that wait, users, and words that say who has which values.
//!
//! ```text
//! word        user's number, 11 bits | block of values, 21 bits | which of the 32 values of that block
//! release     user, 95 bits | number of the value
//! ```
//!
//! Words fill their line from the first place on, and none is ever taken out: the first place that is
//! the wanted one, or free, is where a word belongs. Which of the two it is makes no difference to what is done,
//! so that the CPU need not guess it.

use super::entry::Mark;
use crate::memory::Plain;

/// Bits of a user's number in a word, and of the number of a block of values.
pub(super) const USER_BITS: u32 = 11;
const BLOCK_BITS: u32 = 32 - USER_BITS;
/// Values in a block, as a power of two.
const VALUE_BITS: u32 = 5;
/// Values that have a number.
pub(super) const MOST_VALUES: usize = 1 << (BLOCK_BITS + VALUE_BITS);

/// That a value left under a user. Two whole words: what is written in pieces and read as one makes the
/// CPU wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Release {
    high: u64,
    /// The low bits of the user, and above them the number of the value.
    rest: u64,
}

// SAFETY: plain integers, 16 bytes without padding.
unsafe impl Plain for Release {}

impl Release {
    #[inline(always)]
    pub(super) fn new(user: Mark, value: u32) -> Self {
        Self { high: user.high, rest: u64::from(user.low) | u64::from(value) << 32 }
    }

    #[inline(always)]
    pub(super) fn user(&self) -> Mark {
        Mark { high: self.high, low: self.rest as u32 }
    }

    #[inline(always)]
    pub(super) fn value(&self) -> u32 {
        (self.rest >> 32) as u32
    }
}

/// Values that stand beside their user, the first of low numbers: with few, nothing else is looked at.
pub(super) const FEW: usize = 16;

/// A user, and the fingerprint of what they have: a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct User {
    high: u64,
    low: u32,
    /// Not 0 if they are counted in the class of another fingerprint, or in none yet.
    pub(super) has_changed: u8,
    /// How many values are in `few`; [`ALL_IN_WORDS`] if none is, and none will be.
    count: u8,
    /// Values in words, as far as they are counted.
    others: u16,
    print: [u64; 2],
    few: [[u16; 8]; 2],
}

const ALL_IN_WORDS: u8 = u8::MAX;
/// Values in words from which on a user has none elsewhere.
const MANY: u16 = 48;

// SAFETY: plain integers, 64 bytes without padding.
unsafe impl Plain for User {}

impl User {
    #[inline(always)]
    pub(super) fn new(mark: Mark) -> Self {
        Self { high: mark.high, low: mark.low, ..Self::default() }
    }

    #[inline(always)]
    pub(super) fn mark(&self) -> Mark {
        Mark { high: self.high, low: self.low }
    }

    #[inline(always)]
    pub(super) fn print(&self) -> u128 {
        u128::from(self.print[0]) | u128::from(self.print[1]) << 64
    }

    #[inline(always)]
    pub(super) fn set_print(&mut self, print: u128) {
        self.print = [print as u64, (print >> 64) as u64];
    }

    /// The values that stand beside the user.
    pub(super) fn few(&self) -> &[u16] {
        self.few.as_flattened().get(..usize::from(self.count)).unwrap_or_default()
    }

    /// Whether one more value is in words, so many that those beside the user should be there too.
    #[inline(always)]
    pub(super) fn has_many(&mut self, is_new: bool) -> bool {
        if self.count == ALL_IN_WORDS {
            return false;
        }
        self.others = self.others.saturating_add(u16::from(is_new));
        self.others >= MANY
    }

    /// Whether values that are not here may be in words.
    #[inline(always)]
    pub(super) fn has_words(&self) -> bool {
        usize::from(self.count) >= FEW
    }

    /// Whether a value is new here, where it stands from now on; `None` where that is to be asked of words.
    #[inline(always)]
    pub(super) fn add(&mut self, value: u32) -> Option<bool> {
        if self.count == ALL_IN_WORDS {
            return None;
        }
        let value = u16::try_from(value).ok()?;
        let held = usize::from(self.count);
        let [first, second] = &self.few;
        let found = same(first, value) | same(second, value) << 16;
        // Places behind the last value are not looked at.
        if u64::from(found) << (64 - 2 * FEW) << (2 * (FEW - held)) != 0 {
            return Some(false);
        }
        *self.few.as_flattened_mut().get_mut(held)? = value;
        self.count += 1;
        Some(true)
    }

    /// All its values are going to be in words.
    pub(super) fn give_few(&mut self) -> Self {
        let before = *self;
        self.count = ALL_IN_WORDS;
        before
    }
}

/// Some values of one user, as it stands in a line: 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

impl Word {
    /// A word that has one value.
    #[inline(always)]
    pub(super) fn new(user: u16, value: u32) -> Self {
        let key = u64::from(user) << BLOCK_BITS | u64::from(value >> VALUE_BITS);
        Self(key << 32 | 1 << (value % (1 << VALUE_BITS)))
    }

    #[inline(always)]
    pub(super) fn key(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) fn user(self) -> u16 {
        (self.key() >> BLOCK_BITS) as u16
    }

    /// The same values of another user.
    pub(super) fn of(self, user: u16) -> Self {
        let others = self.0 & !(u64::MAX << (32 + BLOCK_BITS));
        Self(others | u64::from(user) << (32 + BLOCK_BITS))
    }

    /// The numbers of its values.
    pub(super) fn values(self) -> impl Iterator<Item = u32> {
        let first = self.key() << USER_BITS >> USER_BITS << VALUE_BITS;
        (0..1 << VALUE_BITS).filter(move |bit| self.0 >> bit & 1 == 1).map(move |bit| first | bit)
    }
}

/// A cache line of words.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct WordLine([u64; 8]);

// SAFETY: plain integers, 64 bytes without padding.
unsafe impl Plain for WordLine {}

impl WordLine {
    pub(super) const WORDS: usize = 8;
    pub(super) const EMPTY: Self = Self([0; Self::WORDS]);

    pub(super) fn words(&self) -> impl Iterator<Item = Word> {
        self.0.into_iter().take_while(|word| *word != 0).map(Word)
    }

    /// Adds a word's values to what stands there; gives what stood there, `None` if there is no room.
    #[inline(always)]
    pub(super) fn add(&mut self, word: Word) -> Option<Word> {
        let place = self.place(word.key());
        let stands = self.0.get_mut(place)?;
        let before = *stands;
        *stands = before | word.0;
        Some(Word(before))
    }

    /// The first word with this key, or with no values; past the last for none.
    #[inline(always)]
    fn place(&self, key: u32) -> usize {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{
                __m128i, _mm_castps_si128, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_load_si128,
                _mm_movemask_epi8, _mm_or_si128, _mm_packs_epi32, _mm_set1_epi32,
                _mm_setzero_si128, _mm_shuffle_ps,
            };
            // SAFETY: SSE2 is part of x86_64; four times sixteen bytes are read of a line of 64, which
            // begins at a multiple of 64.
            let found = unsafe {
                let line: *const __m128i = self.0.as_ptr().cast();
                let half = |from: usize| {
                    let first = _mm_castsi128_ps(_mm_load_si128(line.add(from)));
                    let second = _mm_castsi128_ps(_mm_load_si128(line.add(from + 1)));
                    let values = _mm_castps_si128(_mm_shuffle_ps::<0b10_00_10_00>(first, second));
                    let keys = _mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(first, second));
                    _mm_or_si128(
                        _mm_cmpeq_epi32(keys, _mm_set1_epi32(key as i32)),
                        _mm_cmpeq_epi32(values, _mm_setzero_si128()),
                    )
                };
                _mm_movemask_epi8(_mm_packs_epi32(half(0), half(2)))
            };
            // Two bits for each.
            ((found as u32 | 1 << (2 * Self::WORDS)).trailing_zeros() / 2) as usize
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let is_place = |word: &u64| *word as u32 == 0 || (*word >> 32) as u32 == key;
            self.0.iter().position(is_place).unwrap_or(Self::WORDS)
        }
    }
}

/// Leads to users: a few bits of each, which are compared at once, and their numbers.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Bucket {
    tags: [u16; 8],
    pub(super) numbers: [u16; 8],
}

// SAFETY: plain integers, 32 bytes without padding.
unsafe impl Plain for Bucket {}

impl Bucket {
    pub(super) const USERS: usize = 8;
    pub(super) const EMPTY: Self = Self { tags: [0; 8], numbers: [0; 8] };

    /// The bits that tell a user: never 0, which stands for nobody.
    #[inline(always)]
    pub(super) fn tag(mark: Mark) -> u16 {
        (mark.low >> 16) as u16 | 1
    }

    /// Which have this tag, two bits for each, the first lowest.
    #[inline(always)]
    pub(super) fn same(&self, tag: u16) -> u32 {
        same(&self.tags, tag)
    }

    /// Puts a user into a free place; false if there is none.
    #[inline(always)]
    pub(super) fn put(&mut self, tag: u16, number: u16) -> bool {
        let Some(place) = self.tags.iter().position(|tag| *tag == 0) else { return false };
        (self.tags[place], self.numbers[place]) = (tag, number);
        true
    }
}

/// Which of eight numbers are this one: two bits for each, the first lowest.
#[inline(always)]
fn same(numbers: &[u16; 8], wanted: u16) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{
            _mm_cmpeq_epi16, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi16,
        };
        // SAFETY: SSE2 is part of x86_64, and sixteen bytes are read from an array of them.
        unsafe {
            let numbers = _mm_loadu_si128(numbers.as_ptr().cast());
            _mm_movemask_epi8(_mm_cmpeq_epi16(numbers, _mm_set1_epi16(wanted as i16))) as u32
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    numbers.iter().rev().fold(0, |found, number| found << 2 | u32::from(*number == wanted) * 3)
}
