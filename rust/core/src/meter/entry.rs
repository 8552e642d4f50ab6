//! What stands in the meter's tables of values and of classes; and the cache lines it stands in, which
//! are what is fetched.

use crate::memory::Plain;

/// A cache line of a table. Its entries fill up from the first; behind a free place there is none.
pub(super) trait Line: Plain {
    /// Something that is known by bits as good as random.
    type Entry: Copy;

    const ENTRIES: usize;
    const EMPTY: Self;

    /// Lines that are fetched for a lookup, from the one that a hash leads to, and how full a table gets,
    /// of a hundred. A lookup that needs a line that was not fetched waits for memory: with these
    /// measures few do.
    const WIDTH: usize;
    const MOST: usize;

    /// The bits that an entry is placed by, high ones first.
    fn hash(entry: &Self::Entry) -> u64;

    /// Where an entry that is known by the same bits stands, and which place is free; past the last
    /// for none.
    fn find(&self, wanted: &Self::Entry) -> (Option<usize>, usize);

    fn get(&self, at: usize) -> Option<Self::Entry>;

    /// `None` frees the place.
    fn set(&mut self, at: usize, entry: Option<Self::Entry>);
}

/// The first bits of a word, 95 of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Mark {
    pub(super) high: u64,
    pub(super) low: u32,
}

impl Mark {
    /// The last bit is given up: it is set, so that the low ones are never 0, which stands for nothing.
    #[inline(always)]
    pub(super) fn new(word: u128) -> Self {
        Self { high: (word >> 64) as u64, low: (word as u64 >> 32) as u32 | 1 }
    }

    pub(super) fn bytes(self) -> [u8; 12] {
        let mut out = [0; 12];
        out[..8].copy_from_slice(&self.high.to_le_bytes());
        out[8..].copy_from_slice(&self.low.to_le_bytes());
        out
    }

    /// `None` for what is no mark.
    pub(super) fn of_bytes([h0, h1, h2, h3, h4, h5, h6, h7, low @ ..]: [u8; 12]) -> Option<Self> {
        let high = u64::from_le_bytes([h0, h1, h2, h3, h4, h5, h6, h7]);
        Some(Self { high, low: u32::from_le_bytes(low) }).filter(|mark| mark.low & 1 == 1)
    }
}

/// A value, and its number in the order in which values came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbered {
    pub(super) mark: Mark,
    pub(super) number: u32,
}

/// Values: their low bits side by side, so that all are compared at once.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct ValueLine {
    low: [u32; 4],
    pub(super) numbers: [u32; 4],
    high: [u64; 4],
}

// SAFETY: plain integers, 64 bytes without padding.
unsafe impl Plain for ValueLine {}

impl Line for ValueLine {
    type Entry = Numbered;

    const ENTRIES: usize = 4;
    const WIDTH: usize = 1;
    const MOST: usize = 65;
    const EMPTY: Self = Self { low: [0; 4], numbers: [0; 4], high: [0; 4] };

    #[inline(always)]
    fn hash(entry: &Numbered) -> u64 {
        entry.mark.high
    }

    #[inline(always)]
    fn find(&self, wanted: &Numbered) -> (Option<usize>, usize) {
        let mut same = equal(&self.low, wanted.mark.low);
        // As a rule there is one, if any.
        while same != 0 {
            let at = same.trailing_zeros() as usize;
            if self.high[at % Self::ENTRIES] == wanted.mark.high {
                return (Some(at), 0);
            }
            same &= same.wrapping_sub(1);
        }
        let free = equal(&self.low, 0) | 1 << Self::ENTRIES;
        (None, free.trailing_zeros() as usize)
    }

    fn get(&self, at: usize) -> Option<Numbered> {
        let mark = Mark { high: self.high[at], low: self.low[at] };
        Some(Numbered { mark, number: self.numbers[at] }).filter(|_| mark.low != 0)
    }

    #[inline(always)]
    fn set(&mut self, at: usize, entry: Option<Numbered>) {
        let Numbered { mark, number } = entry.unwrap_or_default();
        (self.high[at], self.low[at], self.numbers[at]) = (mark.high, mark.low, number);
    }
}

/// Which of four numbers are this one: a bit for each, the first lowest.
#[inline(always)]
fn equal(numbers: &[u32; 4], wanted: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_castsi128_ps, _mm_cmpeq_epi32, _mm_loadu_si128};
        use core::arch::x86_64::{_mm_movemask_ps, _mm_set1_epi32};
        // SAFETY: SSE2 is part of x86_64, and sixteen bytes are read from an array of them. (One by
        // one, a lookup took twice as many instructions.)
        unsafe {
            let numbers = _mm_loadu_si128(numbers.as_ptr().cast());
            let same = _mm_cmpeq_epi32(numbers, _mm_set1_epi32(wanted as i32));
            _mm_movemask_ps(_mm_castsi128_ps(same)) as u32
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    (0..4).map(|at| u32::from(numbers[at] == wanted) << at).sum()
}

/// A set, by its fingerprint, and how many users have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Class {
    high: u64,
    low: u32,
    pub(super) users: u32,
}

impl Class {
    /// Bytes of a table for each class, at most.
    pub(super) const MOST: usize = 48;

    #[inline(always)]
    pub(super) fn new(mark: Mark, users: u32) -> Self {
        Self { high: mark.high, low: mark.low, users }
    }
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct ClassLine(pub(super) [Class; 4]);

// SAFETY: four classes of 16 bytes, plain integers without padding.
unsafe impl Plain for ClassLine {}

impl Line for ClassLine {
    type Entry = Class;

    const ENTRIES: usize = 4;
    const WIDTH: usize = 2;
    const MOST: usize = 75;
    const EMPTY: Self = Self([Class { high: 0, low: 0, users: 0 }; Self::ENTRIES]);

    #[inline(always)]
    fn hash(entry: &Class) -> u64 {
        entry.high
    }

    #[inline(always)]
    fn find(&self, wanted: &Class) -> (Option<usize>, usize) {
        for (at, class) in self.0.iter().enumerate() {
            if class.high == wanted.high && class.low == wanted.low {
                return (Some(at), 0);
            }
            if class.low == 0 {
                return (None, at);
            }
        }
        (None, Self::ENTRIES)
    }

    fn get(&self, at: usize) -> Option<Class> {
        Some(self.0[at]).filter(|class| class.low != 0)
    }

    #[inline(always)]
    fn set(&mut self, at: usize, entry: Option<Class>) {
        self.0[at] = entry.unwrap_or_default();
    }
}
