//! Records that came before, left out between reading and deciding.

use super::Way;
use crate::ids::EventIds;
use crate::text::rows::value;

impl Way {
    /// Asks about the id of each row in their order, however many threads have read them.
    pub(super) fn leave_out(&mut self, ids: Option<&mut EventIds>, block: &[u8], parts: usize) {
        let Some(ids) = ids.filter(|_| self.plan.id_field.is_some()) else { return };
        let mut fresh = Vec::new();
        for (reader, rows) in self.readers.iter_mut().zip(&mut self.rows).take(parts) {
            fresh.clear();
            let each = rows.times.iter().zip(&rows.ids);
            fresh.extend(
                each.map(|(time, id)| ids.is_fresh(*time, value(*id, block, &rows.decoded))),
            );
            let repeated = fresh.iter().filter(|fresh| !**fresh).count();
            if repeated > 0 {
                reader.uncount(rows, &fresh);
                rows.keep(&fresh);
                self.tally.repeated += repeated as u64;
            }
        }
    }
}
