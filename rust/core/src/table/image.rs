//! The table as it is kept: its slots in their order, those that are taken.
//!
//! No slot lies behind a gap that it could have gone into. So slots that are put into an empty table
//! of the same size one by one, in their order, come to lie where they were.

use super::{LARGEST, SMALLEST, Slots, Table};
use crate::codec::{Body, Out, Outcome};
use crate::error::SnapshotError::Damaged;
use crate::memory::Budget;
use crate::slot::Slot;

impl Table {
    /// Writes all slots; `also` writes what belongs to one, behind it.
    pub(crate) fn write<O: Out + ?Sized>(
        &self,
        out: &mut O,
        mut also: impl FnMut(&mut O, &Slot) -> Outcome<()>,
    ) -> Outcome<()> {
        out.number(u64::from(self.current.bits()))?;
        out.number(self.hand as u64)?;
        let (bits, frontier) = match &self.leaving {
            Some((slots, frontier)) => (slots.bits(), *frontier),
            None => (0, 0),
        };
        out.number(u64::from(bits))?;
        out.number(frontier as u64)?;
        let leaving = self.leaving.as_ref().map(|(slots, _)| slots);
        for slots in std::iter::once(&self.current).chain(leaving) {
            for slot in slots.slots.iter().filter(|slot| !slot.is_empty()) {
                out.bytes(&slot.bytes())?;
                also(out, slot)?;
            }
            out.bytes(&Slot::default().bytes())?;
        }
        Ok(())
    }

    /// Reads what `write` wrote; `also` reads and checks what belongs to a slot. All memory is had
    /// at once: nothing grows meanwhile. A size that is a lie takes addresses, not memory.
    pub(crate) fn read<B: Body>(
        body: &mut B,
        budget: &mut Budget,
        mut also: impl FnMut(&mut B, &Slot) -> Outcome<()>,
    ) -> Outcome<Self> {
        let bits = body.number()?;
        let hand = body.size()?;
        let leaving_bits = body.number()?;
        let frontier = body.size()?;
        let mut sized = |bits: u64| {
            let bits = u32::try_from(bits).map_err(|_| Damaged)?;
            if !(SMALLEST..=LARGEST).contains(&bits) {
                return Err(Damaged);
            }
            Slots::new(bits, budget).ok_or(Damaged)
        };
        let current = sized(bits)?;
        let leaving = if leaving_bits == 0 { None } else { Some(sized(leaving_bits)?) };
        let mut table = Self { current, leaving: None, live: 0, most: usize::MAX, hand, moves: 0 };
        table.live += table.current.fill(body, 0, &mut also)?;
        if let Some(mut slots) = leaving {
            table.live += slots.fill(body, frontier, &mut also)?;
            if frontier > slots.slots.len() {
                return Err(Damaged);
            }
            table.leaving = Some((slots, frontier));
        } else if frontier != 0 {
            return Err(Damaged);
        }
        if hand >= table.current.slots.len() {
            return Err(Damaged);
        }
        Ok(table)
    }
}

impl Slots {
    /// Puts slots in, up to an empty one, none before the frontier; says how many.
    fn fill<B: Body>(
        &mut self,
        body: &mut B,
        frontier: usize,
        also: &mut impl FnMut(&mut B, &Slot) -> Outcome<()>,
    ) -> Outcome<usize> {
        let mut count = 0;
        loop {
            let slot = Slot::from_bytes(body.array()?);
            if slot.is_empty() {
                return if slot.bytes() == Slot::default().bytes() {
                    Ok(count)
                } else {
                    Err(Damaged)
                };
            }
            let Err(Some(free)) = self.find(slot.key()) else { return Err(Damaged) };
            if self.home(slot.hash) < frontier {
                return Err(Damaged);
            }
            also(body, &slot)?;
            self.slots[free] = slot;
            count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::Entry;
    use crate::slot::Key;
    use crate::table::Found;
    use proptest::prelude::*;

    fn key(seed: u64) -> Key {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = if seed.is_multiple_of(50) { !(mixed >> 8) } else { mixed };
        Key { hash, check: (seed as u32 & 0xFFFF) << 2 }
    }

    fn slots(table: &Table) -> Vec<Vec<[u8; 32]>> {
        let all = |slots: &Slots| slots.slots.iter().map(Slot::bytes).collect();
        let leaving = table.leaving.as_ref().map(|(slots, _)| all(slots));
        std::iter::once(all(&table.current)).chain(leaving).collect()
    }

    proptest! {
        #[test]
        fn every_slot_comes_back_to_its_place(
            seeds in proptest::collection::vec(0_u64..5000, 1..3000),
            removed in 0_u64..7,
        ) {
            let mut budget = Budget::new(None);
            let mut table = Table::new(&mut budget).unwrap();
            for (n, seed) in seeds.into_iter().enumerate() {
                if n % 100 == 99 {
                    table.retain(|slot| slot.hash % 7 != removed);
                    table.sweep(30, &mut budget, |slot| slot.hash % 5 == removed, |_, _| {});
                }
                let room = table.make_room(&mut budget);
                prop_assert!(room.made);
                if let Found::Free(place) = table.find(key(seed)) {
                    table.insert(place, key(seed), n as u32, Entry { user: seed, time: 0 });
                }
            }
            let mut out = Vec::new();
            table.write(&mut out, |_, _| Ok(())).unwrap();
            let mut other = Budget::new(None);
            let mut body = &out[..];
            let read = Table::read(&mut body, &mut other, |_, _| Ok(())).unwrap();
            body.end().unwrap();
            prop_assert_eq!(slots(&read), slots(&table));
            prop_assert_eq!((read.live, read.hand, other.used()), (table.live, table.hand, budget.used()));
            let frontier = |table: &Table| table.leaving.as_ref().map(|(_, frontier)| *frontier);
            prop_assert_eq!(frontier(&read), frontier(&table));
        }
    }
}
