//! The memory of a period: blocks of a power of two, cut from larger ones, used again when given back.
//!
//! Parts of a period come, grow and are cut in two all the time. With a mapping for each there would be
//! thousands, of small pages; so a few large ones are cut up.

use super::table::Full;
use crate::memory::{Budget, Pages, Plain};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// Cache lines of the smallest mapping and of the largest.
const SMALLEST: usize = 256;
const LARGEST: usize = 1 << 16;

/// What blocks are measured in: a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Unit([u64; 8]);

// SAFETY: plain integers, 64 bytes without padding.
unsafe impl Plain for Unit {}

/// Some values of its own, in memory that it shares with nobody.
pub(super) struct Block<T> {
    start: NonNull<T>,
    len: usize,
    /// Only held: it is what `start` points into.
    held: Arc<Pages<Unit>>,
}

// SAFETY: a block owns its values as a `Box<[T]>` would, and T may go to any thread (`Plain`).
unsafe impl<T: Plain> Send for Block<T> {}
// SAFETY: a shared block gives shared access only.
unsafe impl<T: Plain> Sync for Block<T> {}

impl Block<Unit> {
    fn new(mut pages: Pages<Unit>) -> Self {
        let (start, len) = (NonNull::from(&mut pages[..]).cast(), pages.len());
        // From here on nobody looks at the pages but through blocks.
        Self { start, len, held: Arc::new(pages) }
    }

    /// Two of half the length each.
    fn halves(self) -> [Self; 2] {
        let len = self.len / 2;
        // SAFETY: `len` values on lies the latter half of this block, which ends to be with this call.
        let second = unsafe { self.start.add(len) };
        let held = Arc::clone(&self.held);
        [Self { start: self.start, len, held: self.held }, Self { start: second, len, held }]
    }
}

impl<T: Plain> Block<T> {
    /// The same memory as values of another kind.
    fn cast<U: Plain>(self) -> Block<U> {
        const { assert!(align_of::<U>() <= align_of::<Unit>()) };
        // It begins and ends at a line, and any bytes are a value of U (`Plain`).
        let len = self.len * size_of::<T>() / size_of::<U>();
        Block { start: self.start.cast(), len, held: self.held }
    }

    /// Tells the CPU that a value will be used soon.
    #[inline(always)]
    pub(super) fn prefetch(&self, index: usize) {
        crate::memory::fetch(self.start.as_ptr().wrapping_add(index));
    }
}

impl<T: Plain> Deref for Block<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values of T lie from `start` on, a line's beginning, any bytes are values of T
        // (`Plain`), no other block has them (`halves`), and they live as long as `held`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Block<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`; `&mut self` makes it the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// Gives blocks, and takes them back.
#[derive(Default)]
pub(super) struct Pool {
    /// Blocks that nobody has, by length: of each power of two, in lines.
    free: Vec<Vec<Block<Unit>>>,
    bytes: usize,
}

impl Pool {
    /// Values whose bytes are anything; their number is a power of two, as is their size.
    pub(super) fn take<T: Plain>(
        &mut self,
        count: usize,
        budget: &mut Budget,
    ) -> Result<Block<T>, Full> {
        let lines = (count * size_of::<T>()).div_ceil(size_of::<Unit>());
        let class = lines.next_power_of_two().trailing_zeros() as usize;
        let place = self.free.iter().skip(class).position(|free| !free.is_empty());
        let (mut block, from) = match place {
            None => self.map(1 << class, budget)?,
            Some(place) => (self.free[class + place].pop().ok_or(Full)?, class + place),
        };
        for smaller in (class..from).rev() {
            let [first, second] = block.halves();
            block = first;
            self.free[smaller].push(second);
        }
        Ok(block.cast())
    }

    /// Takes a block back, also one that was another pool's.
    pub(super) fn give<T: Plain>(&mut self, block: Block<T>) {
        let block = block.cast::<Unit>();
        let class = block.len.trailing_zeros() as usize;
        self.know(class);
        self.free[class].push(block);
    }

    /// Has a list for blocks of this class.
    fn know(&mut self, class: usize) {
        self.free.resize_with(self.free.len().max(class + 1), Vec::new);
    }

    /// A new mapping, a share of what there is already; no more than needed where that does not fit.
    #[cold]
    fn map(&mut self, lines: usize, budget: &mut Budget) -> Result<(Block<Unit>, usize), Full> {
        let share = (self.bytes / size_of::<Unit>() / 4).next_power_of_two();
        let wanted = share.clamp(SMALLEST, LARGEST).max(lines);
        let pages = budget.pages(wanted).or_else(|| budget.pages(lines)).ok_or(Full)?;
        self.bytes += pages.bytes();
        let class = pages.len().trailing_zeros() as usize;
        self.know(class);
        Ok((Block::new(pages), class))
    }

    /// Gives all memory back; to be called when no block is left.
    pub(super) fn free(self, budget: &mut Budget) {
        budget.release(self.bytes);
    }
}
