//! The slab as it is kept: which blocks there are, and in which order they will be given out.
//!
//! Not the blocks themselves: what is in one comes with its slot. Where a block lies, and what lies
//! free beside it, decides which memory can go back and so what a limit forbids later; it is kept so
//! that a gate at its limit goes on as it would have. Slots are believed only where a block of theirs
//! is one that was given out, to nobody else.

use super::{
    ALL_EMPTY, Block, EXTENT, Entry, Extent, LARGE, NONE, PAGE, PAGES_PER_EXTENT, Page, SIZES,
    Slab, UNIT, capacity, number, place,
};
use crate::codec::{Body, Out, Outcome};
use crate::error::SnapshotError::Damaged;
use crate::memory::{Budget, Pages};

impl Page {
    fn has_room(&self) -> bool {
        self.freed != NONE || (self.fresh as usize + 1) * capacity(self.class) <= PAGE
    }
}

impl Slab {
    pub(crate) fn write<O: Out + ?Sized>(&self, out: &mut O) -> Outcome<()> {
        out.number(self.extents.len() as u64)?;
        for (number, extent) in self.extents.iter().enumerate() {
            let is_there = !extent.memory.is_empty();
            out.number(u64::from(is_there) << 32 | u64::from(extent.empty))?;
            let pages =
                (0..PAGES_PER_EXTENT).filter(|page| is_there && extent.empty >> page & 1 == 0);
            for page in pages {
                self.write_page(out, (number * PAGES_PER_EXTENT + page) as u32)?;
            }
        }
        out.number(self.gone.len() as u64)?;
        for number in &self.gone {
            out.number(u64::from(*number))?;
        }
        for first in &self.open {
            let mut page = *first;
            while page != NONE {
                out.number(u64::from(page))?;
                page = self.pages[page as usize].next;
            }
            out.number(u64::from(NONE))?;
        }
        out.number(self.large.len() as u64)?;
        for pages in &self.large {
            out.number(pages.as_ref().map_or(0, |pages| pages.len() as u64))?;
        }
        out.number(self.large_free.len() as u64)?;
        for number in &self.large_free {
            out.number(u64::from(*number))?;
        }
        Ok(())
    }

    /// Its class, how many blocks were given out, how many of them came back, and in which order.
    fn write_page<O: Out + ?Sized>(&self, out: &mut O, page_number: u32) -> Outcome<()> {
        let page = self.pages[page_number as usize];
        let freed = page.fresh - page.used;
        out.number(u64::from(page.class) | u64::from(page.fresh) << 8 | u64::from(freed) << 32)?;
        let mut index = page.freed;
        while index != NONE {
            out.bytes(&(index as u16).to_le_bytes())?;
            let number = number(page_number, index, capacity(page.class));
            index = self.entries(Block { class: page.class, number })[0].user as u32;
        }
        Ok(())
    }
}

/// Blocks of one page that are accounted for: one bit each.
type Known = [u64; PAGE / UNIT / 64];

/// A page, and its freed blocks in the order in which they will be given out.
type Freed = (u32, Vec<u16>);

/// A slab being read: blocks are taken by their slots, until all are.
pub(crate) struct SlabImage {
    slab: Slab,
    /// Of each page.
    known: Vec<Known>,
    /// For each extent that is there and has no memory yet: the freed blocks of its pages.
    freed: Vec<Option<Vec<Freed>>>,
    large: Vec<Option<u8>>,
}

impl SlabImage {
    pub(crate) fn read(body: &mut impl Body) -> Outcome<Self> {
        let mut image =
            Self { slab: Slab::new(), known: Vec::new(), freed: Vec::new(), large: Vec::new() };
        for number in 0..body.number()? {
            image.read_extent(body, u32::try_from(number).map_err(|_| Damaged)?)?;
        }
        let gone = body.list(|body| u32::try_from(body.number()?).map_err(|_| Damaged))?;
        let mut missing: Vec<bool> = image.freed.iter().map(Option::is_none).collect();
        for number in &gone {
            let known = missing.get_mut(*number as usize).ok_or(Damaged)?;
            if !std::mem::take(known) {
                return Err(Damaged);
            }
        }
        if missing.contains(&true) {
            return Err(Damaged);
        }
        image.slab.gone = gone;
        image.read_open(body)?;
        image.read_large(body)?;
        Ok(image)
    }

    fn read_extent(&mut self, body: &mut impl Body, number: u32) -> Outcome<()> {
        // Block numbers are 32 bits of 64-byte units.
        if (number as usize + 1) * PAGES_PER_EXTENT > NONE as usize / (PAGE / UNIT) {
            return Err(Damaged);
        }
        let told = body.number()?;
        let empty = told as u32;
        let is_there = match told >> 32 {
            0 if empty == 0 => false,
            1 => true,
            _ => return Err(Damaged),
        };
        let blank = Page { class: 0, used: 0, fresh: 0, freed: NONE, previous: NONE, next: NONE };
        let mut freed = Vec::new();
        for page in 0..PAGES_PER_EXTENT {
            self.slab.pages.push(blank);
            self.known.push([0; PAGE / UNIT / 64]);
            if is_there && empty >> page & 1 == 0 {
                let page = number * PAGES_PER_EXTENT as u32 + page as u32;
                freed.push((page, self.read_page(body, page)?));
            }
        }
        if is_there && empty != 0 {
            self.slab.roomy.insert(number);
        }
        self.slab.extents.push(Extent { memory: Pages::none(), empty });
        self.freed.push(is_there.then_some(freed));
        Ok(())
    }

    fn read_page(&mut self, body: &mut impl Body, page_number: u32) -> Outcome<Vec<u16>> {
        let told = body.number()?;
        let (class, fresh, freed) =
            (told as u8, (told >> 8) as u32 & 0xFF_FFFF, (told >> 32) as u32);
        if class >= LARGE || fresh as usize * capacity(class) > PAGE || freed >= fresh {
            return Err(Damaged);
        }
        let mut order = Vec::new();
        for _ in 0..freed {
            let index = u16::from_le_bytes(body.array()?);
            if u32::from(index) >= fresh || !know(&mut self.known[page_number as usize], index) {
                return Err(Damaged);
            }
            order.push(index);
        }
        let first = order.first().map_or(NONE, |index| u32::from(*index));
        self.slab.pages[page_number as usize] =
            Page { class, used: fresh - freed, fresh, freed: first, previous: NONE, next: NONE };
        Ok(order)
    }

    /// For each class the pages that have room.
    fn read_open(&mut self, body: &mut impl Body) -> Outcome<()> {
        let pages = &self.slab.pages;
        let mut closed: Vec<bool> =
            pages.iter().map(|page| page.used > 0 && page.has_room()).collect();
        for class in 0..LARGE {
            let mut listed = Vec::new();
            loop {
                let page = body.number()?;
                if page == u64::from(NONE) {
                    break;
                }
                let page = u32::try_from(page).map_err(|_| Damaged)?;
                let known = closed.get_mut(page as usize).ok_or(Damaged)?;
                if !std::mem::take(known) || self.slab.pages[page as usize].class != class {
                    return Err(Damaged);
                }
                listed.push(page);
            }
            listed.into_iter().rev().for_each(|page| self.slab.link(page));
        }
        if closed.contains(&true) { Err(Damaged) } else { Ok(()) }
    }

    fn read_large(&mut self, body: &mut impl Body) -> Outcome<()> {
        self.large = body.list(|body| {
            let size = body.number()?;
            let large = &SIZES[usize::from(LARGE)..];
            let class = large.iter().position(|one| u64::from(*one) == size);
            match class {
                Some(class) => Ok(Some(LARGE + class as u8)),
                None if size == 0 => Ok(None),
                None => Err(Damaged),
            }
        })?;
        self.slab.large.resize_with(self.large.len(), || None);
        let free = body.list(|body| u32::try_from(body.number()?).map_err(|_| Damaged))?;
        let mut missing: Vec<bool> = self.large.iter().map(Option::is_none).collect();
        for number in &free {
            if !missing.get_mut(*number as usize).map(std::mem::take).ok_or(Damaged)? {
                return Err(Damaged);
            }
        }
        self.slab.large_free = free;
        if missing.contains(&true) { Err(Damaged) } else { Ok(()) }
    }

    /// The entries of a block that a slot has. Memory is had for what is taken, not before.
    pub(crate) fn take(&mut self, block: Block, budget: &mut Budget) -> Outcome<&mut [Entry]> {
        if block.class >= LARGE {
            let told = self.large.get_mut(block.number as usize).ok_or(Damaged)?;
            if *told != Some(block.class) {
                return Err(Damaged);
            }
            *told = None;
            let pages = budget.pages(capacity(block.class)).ok_or(Damaged)?;
            let pages = self.slab.large[block.number as usize].insert(pages);
            return Ok(&mut pages[..]);
        }
        let (extent, start) = place(block.number);
        let page_number = block.number as usize / (PAGE / UNIT);
        let page = self.slab.pages.get(page_number).ok_or(Damaged)?;
        let size = capacity(block.class);
        let at = start % PAGE;
        let index = at / size;
        let is_given = page.used > 0
            && page.class == block.class
            && at.is_multiple_of(size)
            && index < page.fresh as usize;
        if !is_given || !know(&mut self.known[page_number], index as u16) {
            return Err(Damaged);
        }
        self.have(extent, budget)?;
        Ok(&mut self.slab.extents[extent].memory[start..start + size])
    }

    /// Memory for an extent, with the freed blocks of its pages in their order.
    fn have(&mut self, extent: usize, budget: &mut Budget) -> Outcome<()> {
        let Some(freed) = self.freed[extent].take() else { return Ok(()) };
        self.slab.extents[extent].memory = budget.pages(EXTENT).ok_or(Damaged)?;
        for (page, order) in freed {
            let class = self.slab.pages[page as usize].class;
            for (place, index) in order.iter().enumerate() {
                let next = order.get(place + 1).map_or(NONE, |next| u32::from(*next));
                let number = number(page, u32::from(*index), capacity(class));
                self.slab.entries_mut(Block { class, number })[0].user = u64::from(next);
            }
        }
        Ok(())
    }

    /// The slab, if all of its blocks were taken.
    pub(crate) fn finish(mut self, budget: &mut Budget) -> Outcome<Slab> {
        // One that is empty may be kept at hand.
        let mut spare = 0;
        for extent in 0..self.freed.len() {
            if self.freed[extent].is_some() {
                spare += 1;
                if self.slab.extents[extent].empty != ALL_EMPTY || spare > 1 {
                    return Err(Damaged);
                }
                self.have(extent, budget)?;
            }
        }
        let all = self.slab.pages.iter().zip(&self.known).all(|(page, known)| {
            known.iter().map(|word| word.count_ones()).sum::<u32>() == page.fresh
        });
        if !all || self.large.iter().any(Option::is_some) {
            return Err(Damaged);
        }
        Ok(self.slab)
    }
}

/// Sets a bit; false if it was set before.
fn know(known: &mut Known, index: u16) -> bool {
    let (word, bit) = (usize::from(index) / 64, 1_u64 << (index % 64));
    let is_new = known[word] & bit == 0;
    known[word] |= bit;
    is_new
}
