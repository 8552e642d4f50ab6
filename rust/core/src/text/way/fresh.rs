//! Records that came before, left out between reading and deciding.

use super::Way;
use super::part::Part;
use crate::ids::EventIds;
use crate::text::rows::{Spot, value};

impl Way {
    /// Asks about the id of each row in their order, whichever thread has read them.
    pub(super) fn leave_out(
        &mut self,
        ids: Option<&mut EventIds>,
        block: &[u8],
        Part { reader, rows, .. }: &mut Part,
    ) {
        let Some(ids) = ids.filter(|_| self.plan.id_field.is_some()) else { return };
        let each = rows.times.iter().zip(&rows.ids);
        let is_fresh =
            |(time, id): (&i64, &Spot)| ids.is_fresh(*time, value(*id, block, &rows.decoded));
        let fresh: Vec<bool> = each.map(is_fresh).collect();
        let repeated = fresh.iter().filter(|fresh| !**fresh).count();
        if repeated > 0 {
            reader.uncount(rows, &fresh);
            rows.keep(&fresh);
            self.tally.repeated += repeated as u64;
        }
    }
}
