//! A shard as it is kept: all of it, so that it goes on exactly as it would have.

use super::Shard;
use crate::codec::{Body, Out, Outcome};
use crate::crowd::NO_CERTIFICATE;
use crate::error::SnapshotError::Damaged;
use crate::expiry::Sweep;
use crate::memory::Budget;
use crate::noise::Noise;
use crate::slab::{Entry, Slab, SlabImage};
use crate::slot::{Held, Slot};
use crate::table::Table;

/// What everything in a shard is held against.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) clock: i64,
    /// Of that clock.
    pub(crate) epoch: u64,
    pub(crate) window: i64,
    pub(crate) limit: Option<usize>,
}

impl Shard {
    pub(crate) fn write<O: Out + ?Sized>(&self, out: &mut O) -> Outcome<()> {
        out.number(self.refused)?;
        out.number(self.refused_clock as u64)?;
        out.number(self.sweep.epoch)?;
        out.number(self.sweep.debt as u64)?;
        self.slab.write(out)?;
        self.table.write(out, |out, slot| {
            let Held::Crowd(crowd) = slot.held() else { return Ok(()) };
            for entry in &self.slab.entries(crowd.block)[..crowd.len] {
                out.bytes(&entry.bytes())?;
            }
            Ok(())
        })
    }

    pub(crate) fn read<B: Body>(
        body: &mut B,
        noise: Option<Noise>,
        bounds: Bounds,
    ) -> Outcome<Self> {
        let (refused, refused_clock) = (body.number()?, body.number()? as i64);
        let sweep = Sweep { epoch: body.number()?, debt: body.size()? };
        // The hand goes by the clock and is never ahead of it; a lap and a little is owed at most.
        if sweep.epoch > bounds.epoch || sweep.debt > usize::MAX / 4 {
            return Err(Damaged);
        }
        let mut slab = SlabImage::read(body)?;
        // Tables and crowds share a limit, and are read in turns: one account each, then one.
        let (mut tables, mut crowds) = (Budget::new(bounds.limit), Budget::new(bounds.limit));
        let table = Table::read(body, &mut tables, |body, slot| match slot.held() {
            Held::Nobody => Err(Damaged),
            Held::Single(entry) => bounds.check_single(slot, entry),
            Held::Crowd(crowd) => {
                let entries = slab.take(crowd.block, &mut crowds)?;
                let is_sound = crowd.len > 0 && slot.has_room_for_credit(crowd.len, entries.len());
                if !is_sound {
                    return Err(Damaged);
                }
                let entries = &mut entries[..crowd.len];
                for entry in &mut *entries {
                    *entry = Entry::from_bytes(body.array()?);
                }
                bounds.check_crowd(entries, crowd.certificate)
            }
        })?;
        let slab: Slab = slab.finish(&mut crowds)?;
        let budget = tables.with(&crowds).ok_or(Damaged)?;
        let scratch = Default::default();
        Ok(Self { table, slab, budget, scratch, sweep, noise, refused, refused_clock })
    }
}

impl Bounds {
    fn check_single(&self, slot: &Slot, entry: Entry) -> Outcome<()> {
        let is_sound = self.contain(entry) && slot.has_room_for_credit(0, 0);
        if is_sound { Ok(()) } else { Err(Damaged) }
    }

    fn check_crowd(&self, entries: &[Entry], certificate: i64) -> Outcome<()> {
        let in_order = entries.is_sorted_by_key(|entry| entry.time);
        let newest = entries.last().map_or(i64::MIN, |entry| entry.time);
        let certain = newest.saturating_add(self.window);
        let is_sound = in_order
            && entries.iter().all(|entry| self.contain(*entry))
            && (certificate == NO_CERTIFICATE || certificate <= certain);
        if is_sound { Ok(()) } else { Err(Damaged) }
    }

    fn contain(&self, entry: Entry) -> bool {
        i64::MIN < entry.time && entry.time <= self.clock
    }
}
