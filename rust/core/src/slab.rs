//! Blocks of entries in a few sizes, so that a crowd may grow and go without a call to the system.
//!
//! Memory comes in extents of 2 MiB, cut into pages of 64 KiB. A page holds blocks of one size; when
//! its last block is freed it may hold another size. An extent whose pages are all empty goes back to
//! the system, but for one that is kept at hand. Blocks above a page have a mapping of their own.

mod image;

pub(crate) use image::SlabImage;

use crate::memory::{Budget, Pages, Plain};
use std::collections::BTreeSet;

/// One user seen at one time. The user is a keyed hash that holds under one attribute only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Entry {
    pub(crate) user: u64,
    pub(crate) time: i64,
}

// SAFETY: two plain integers of eight bytes, no padding.
unsafe impl Plain for Entry {}

impl Entry {
    /// As it is kept.
    pub(crate) fn bytes(self) -> [u8; 16] {
        (u128::from(self.time as u64) << 64 | u128::from(self.user)).to_le_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_le_bytes(bytes);
        Self { user: both as u64, time: (both >> 64) as i64 }
    }
}

/// A cache line: the unit in which blocks are addressed.
const UNIT: usize = 4;
const PAGE: usize = 4096;
const PAGES_PER_EXTENT: usize = 32;
const EXTENT: usize = PAGE * PAGES_PER_EXTENT;
const NONE: u32 = u32::MAX;

/// Entries in a block of each class.
const SIZES: [u32; 34] = [
    4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096,
    // From here on each block is a mapping of its own.
    8192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576, 2_097_152, 4_194_304,
    8_388_608, 12_582_912, 16_777_216, 25_165_824, 33_554_431,
];
const LARGE: u8 = 19;

/// The most entries that a block can have.
pub(crate) const LARGEST: usize = SIZES[SIZES.len() - 1] as usize;

/// Which block: its class and its number within the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) class: u8,
    pub(crate) number: u32,
}

/// The smallest class that holds `entries`.
pub(crate) fn class_for(entries: usize) -> u8 {
    let class = SIZES.iter().position(|size| *size as usize >= entries);
    class.unwrap_or(SIZES.len() - 1) as u8
}

#[inline(always)]
pub(crate) fn capacity(class: u8) -> usize {
    /// As many as six bits can name, so that no check is needed.
    const ALL: [u32; 64] = {
        let mut all = [0; 64];
        let mut class = 0;
        while class < SIZES.len() {
            all[class] = SIZES[class];
            class += 1;
        }
        all
    };
    ALL[usize::from(class & 63)] as usize
}

/// A page of blocks of one class, in the list of pages of that class with room left.
#[derive(Clone, Copy)]
struct Page {
    class: u8,
    /// Blocks handed out and not yet freed.
    used: u32,
    /// Blocks ever handed out since the page got its class.
    fresh: u32,
    /// The first freed block (each holds the next in its first entry), or NONE.
    freed: u32,
    previous: u32,
    next: u32,
}

/// Some memory, and which of its pages hold nothing: one bit each.
struct Extent {
    memory: Pages<Entry>,
    empty: u32,
}

const ALL_EMPTY: u32 = u32::MAX;

pub(crate) struct Slab {
    /// Without memory where an extent went back to the system; its number is in `gone`.
    extents: Vec<Extent>,
    gone: Vec<u32>,
    /// Extents with an empty page. The lowest is used first, so that the others can become empty.
    roomy: BTreeSet<u32>,
    pages: Vec<Page>,
    /// For each class the first page that has room, or NONE.
    open: [u32; LARGE as usize],
    large: Vec<Option<Pages<Entry>>>,
    large_free: Vec<u32>,
}

impl Slab {
    pub(crate) fn new() -> Self {
        Self {
            extents: Vec::new(),
            gone: Vec::new(),
            roomy: BTreeSet::new(),
            pages: Vec::new(),
            open: [NONE; LARGE as usize],
            large: Vec::new(),
            large_free: Vec::new(),
        }
    }

    #[inline(always)]
    pub(crate) fn entries(&self, block: Block) -> &[Entry] {
        if block.class >= LARGE {
            return self.large[block.number as usize].as_deref().unwrap_or(&[]);
        }
        let (extent, start) = place(block.number);
        &self.extents[extent].memory[start..start + capacity(block.class)]
    }

    #[inline(always)]
    pub(crate) fn entries_mut(&mut self, block: Block) -> &mut [Entry] {
        if block.class >= LARGE {
            return self.large[block.number as usize].as_deref_mut().unwrap_or(&mut []);
        }
        let (extent, start) = place(block.number);
        debug_assert!(start + capacity(block.class) <= self.extents[extent].memory.len());
        // SAFETY: only `allocate` makes a block, within the memory of an extent that is there until
        // the block is freed; slots drop their block when they free it. (The checks took 7 % of
        // the time per observation.)
        unsafe {
            let memory = &mut self.extents.get_unchecked_mut(extent).memory;
            memory.get_unchecked_mut(start..start.wrapping_add(capacity(block.class)))
        }
    }

    /// Writes the entry number `at` of a block.
    #[inline(always)]
    pub(crate) fn put(&mut self, block: Block, at: usize, entry: Entry) {
        if block.class >= LARGE {
            self.entries_mut(block)[at] = entry;
            return;
        }
        let (extent, start) = place(block.number);
        debug_assert!(at < capacity(block.class));
        // SAFETY: as for `entries_mut`; a slot gives out a place only where its crowd has credit,
        // which is never more than the room in its block.
        unsafe {
            let memory = &mut self.extents.get_unchecked_mut(extent).memory;
            *memory.get_unchecked_mut(start.wrapping_add(at)) = entry;
        }
    }

    /// Fetches the line of one entry.
    #[inline(always)]
    pub(crate) fn prefetch(&self, block: Block, at: usize) {
        let (extent, start) = place(block.number);
        // A large block has another kind of number; its line is not fetched.
        if let Some(extent) = self.extents.get(extent) {
            extent.memory.prefetch(start.wrapping_add(at));
        }
    }

    /// Fetches the lines of a log of so many entries, the newest kilobyte at most.
    pub(crate) fn prefetch_log(&self, block: Block, len: usize) {
        let oldest = len.saturating_sub(15 * UNIT);
        (oldest..=len).step_by(UNIT).for_each(|at| self.prefetch(block, at));
    }

    pub(crate) fn allocate(&mut self, class: u8, budget: &mut Budget) -> Option<Block> {
        let number = if class >= LARGE {
            self.allocate_large(class, budget)?
        } else {
            self.allocate_small(class, budget)?
        };
        Some(Block { class, number })
    }

    pub(crate) fn free(&mut self, block: Block, budget: &mut Budget) {
        if block.class >= LARGE {
            if let Some(pages) = self.large[block.number as usize].take() {
                budget.free(pages);
                self.large_free.push(block.number);
            }
        } else {
            self.free_small(block, budget);
        }
    }

    fn allocate_large(&mut self, class: u8, budget: &mut Budget) -> Option<u32> {
        let pages = budget.pages(capacity(class))?;
        let number = self.large_free.pop().unwrap_or_else(|| {
            self.large.push(None);
            (self.large.len() - 1) as u32
        });
        self.large[number as usize] = Some(pages);
        Some(number)
    }

    fn allocate_small(&mut self, class: u8, budget: &mut Budget) -> Option<u32> {
        let size = capacity(class);
        let mut page_number = self.open[usize::from(class)];
        if page_number == NONE {
            page_number = self.empty_page(budget)?;
            self.pages[page_number as usize] =
                Page { class, used: 0, fresh: 0, freed: NONE, previous: NONE, next: NONE };
            self.link(page_number);
        }
        let page = &mut self.pages[page_number as usize];
        let index = if page.freed == NONE {
            page.fresh += 1;
            page.fresh - 1
        } else {
            page.freed
        };
        page.used += 1;
        let number = number(page_number, index, size);
        if page.freed == index {
            let next = self.entries(Block { class, number })[0].user as u32;
            self.pages[page_number as usize].freed = next;
        }
        let page = self.pages[page_number as usize];
        if page.freed == NONE && (page.fresh as usize + 1) * size > PAGE {
            self.unlink(page_number);
        }
        self.prefetch_next(class);
        Some(number)
    }

    /// Fetches the block that is handed out next, which may have been in no cache since it was freed.
    #[inline(always)]
    fn prefetch_next(&self, class: u8) {
        let page_number = self.open[usize::from(class)];
        if let Some(page) = self.pages.get(page_number as usize) {
            let index = if page.freed == NONE { page.fresh } else { page.freed };
            self.prefetch(Block { class, number: number(page_number, index, capacity(class)) }, 0);
        }
    }

    fn free_small(&mut self, block: Block, budget: &mut Budget) {
        let size = capacity(block.class);
        let units = block.number as usize % (PAGE / UNIT);
        let index = (units * UNIT / size) as u32;
        let page_number = (block.number as usize / (PAGE / UNIT)) as u32;
        let page = self.pages[page_number as usize];
        let full = page.freed == NONE && (page.fresh as usize + 1) * size > PAGE;
        // Nothing of a crowd stays behind.
        self.entries_mut(block).fill(Entry::default());
        self.entries_mut(block)[0].user = u64::from(page.freed);
        let page = &mut self.pages[page_number as usize];
        page.freed = index;
        page.used -= 1;
        let used = page.used;
        if used == 0 {
            if !full {
                self.unlink(page_number);
            }
            self.page_emptied(page_number, budget);
        } else if full {
            self.link(page_number);
        }
    }

    fn empty_page(&mut self, budget: &mut Budget) -> Option<u32> {
        if let Some(&number) = self.roomy.first() {
            let extent = &mut self.extents[number as usize];
            let page = extent.empty.trailing_zeros();
            extent.empty &= extent.empty.wrapping_sub(1);
            if extent.empty == 0 {
                self.roomy.remove(&number);
            }
            return Some(number * PAGES_PER_EXTENT as u32 + page);
        }
        let memory = budget.pages(EXTENT)?;
        let number = match self.gone.pop() {
            Some(number) => number,
            // Block numbers are 32 bits of 64-byte units.
            None if self.pages.len() >= (NONE as usize) / (PAGE / UNIT) - PAGES_PER_EXTENT => {
                budget.free(memory);
                return None;
            }
            None => {
                self.extents.push(Extent { memory: Pages::none(), empty: 0 });
                let blank =
                    Page { class: 0, used: 0, fresh: 0, freed: NONE, previous: NONE, next: NONE };
                self.pages.resize(self.pages.len() + PAGES_PER_EXTENT, blank);
                (self.extents.len() - 1) as u32
            }
        };
        self.extents[number as usize] = Extent { memory, empty: ALL_EMPTY };
        self.roomy.insert(number);
        self.empty_page(budget)
    }

    fn page_emptied(&mut self, page: u32, budget: &mut Budget) {
        let number = page / PAGES_PER_EXTENT as u32;
        let extent = &mut self.extents[number as usize];
        self.roomy.insert(number);
        extent.empty |= 1 << (page % PAGES_PER_EXTENT as u32);
        if extent.empty != ALL_EMPTY {
            return;
        }
        let is_spare = |other: u32| self.extents[other as usize].empty == ALL_EMPTY;
        if self.roomy.iter().any(|&other| other != number && is_spare(other)) {
            self.roomy.remove(&number);
            let none = Extent { memory: Pages::none(), empty: 0 };
            budget.free(std::mem::replace(&mut self.extents[number as usize], none).memory);
            self.gone.push(number);
        }
    }

    fn link(&mut self, page_number: u32) {
        let class = usize::from(self.pages[page_number as usize].class);
        let next = std::mem::replace(&mut self.open[class], page_number);
        let page = &mut self.pages[page_number as usize];
        page.previous = NONE;
        page.next = next;
        if next != NONE {
            self.pages[next as usize].previous = page_number;
        }
    }

    fn unlink(&mut self, page_number: u32) {
        let Page { class, previous, next, .. } = self.pages[page_number as usize];
        if previous == NONE {
            self.open[usize::from(class)] = next;
        } else {
            self.pages[previous as usize].next = next;
        }
        if next != NONE {
            self.pages[next as usize].previous = previous;
        }
    }
}

#[inline(always)]
fn place(number: u32) -> (usize, usize) {
    const UNITS: usize = EXTENT / UNIT;
    let number = number as usize;
    (number / UNITS, number % UNITS * UNIT)
}

fn number(page: u32, index: u32, size: usize) -> u32 {
    let units = page as usize * (PAGE / UNIT) + index as usize * (size / UNIT);
    units as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_never_overlap_and_all_memory_comes_back(
            steps in proptest::collection::vec((0_usize..6000, any::<proptest::sample::Index>()), 1..400)
        ) {
            let mut slab = Slab::new();
            let mut budget = Budget::new(None);
            let mut held: Vec<(Block, u64)> = Vec::new();
            for (stamp, (entries, which)) in steps.into_iter().enumerate() {
                if entries % 3 == 0 && !held.is_empty() {
                    let (block, stamp) = held.swap_remove(which.index(held.len()));
                    prop_assert!(slab.entries(block).iter().all(|entry| entry.user == stamp));
                    slab.free(block, &mut budget);
                } else if let Some(block) = slab.allocate(class_for(entries.max(1)), &mut budget) {
                    prop_assert!(slab.entries(block).len() >= entries);
                    slab.entries_mut(block).fill(Entry { user: stamp as u64, time: 0 });
                    held.push((block, stamp as u64));
                }
            }
            for (block, stamp) in held.drain(..) {
                prop_assert!(slab.entries(block).iter().all(|entry| entry.user == stamp));
                slab.free(block, &mut budget);
            }
            let held = slab.extents.len() - slab.gone.len();
            prop_assert!(held <= 1);
            prop_assert_eq!(budget.used(), held * EXTENT * size_of::<Entry>());
            prop_assert!(slab.open.iter().all(|page| *page == NONE));
        }
    }

    #[test]
    fn the_limit_holds() {
        let mut slab = Slab::new();
        let mut budget = Budget::new(Some(5 << 20));
        let mut blocks = 0;
        while slab.allocate(class_for(1024), &mut budget).is_some() {
            blocks += 1;
        }
        assert_eq!(blocks, (4 << 20) / (1024 * 16));
        assert!(budget.used() <= 5 << 20);
    }
}
