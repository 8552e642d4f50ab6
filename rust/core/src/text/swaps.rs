//! Values that leave instead of others: found while the gates are asked, put where they are written.

use super::plan::{Output, Plan};
use super::rows::Rows;
use crate::codec::{Body, Out, Outcome};
use crate::error::{Error, SnapshotError};
use crate::gate::Gate;
use crate::swap::{Observations, Owned, Swap};

/// What is swapped of each attribute.
#[derive(Default)]
pub(super) struct Swaps {
    /// Empty where nothing is.
    of_each: Vec<Option<Swap>>,
    /// Attribute, row and value; until they are put into the rows.
    found: Vec<(usize, usize, Owned)>,
    /// What to go on from, for each attribute, until the gates are there.
    resumed: Vec<Vec<u8>>,
}

impl Swaps {
    /// Begins with the gates that decide what is written, whose secrets the draws come from.
    pub(super) fn begin(&mut self, plan: &Plan, gates: &[&mut Gate]) -> Result<(), Error> {
        let swaps = plan.swaps.iter().any(|share| *share > 0.0);
        if !swaps || !self.of_each.is_empty() || plan.output == Output::Nothing {
            return Ok(());
        }
        let one = |(share, gate): (&f64, &&mut Gate)| {
            (*share > 0.0).then(|| Swap::new(*share, gate.secret())).transpose()
        };
        self.of_each = plan.swaps.iter().zip(gates).map(one).collect::<Result<_, _>>()?;
        for (swap, state) in self.of_each.iter_mut().flatten().zip(self.resumed.drain(..)) {
            swap.resume(&state)?;
        }
        Ok(())
    }

    /// The states of those that there are, in the order of the attributes.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Outcome<()> {
        if self.of_each.is_empty() {
            out.number(self.resumed.len() as u64)?;
            return self.resumed.iter().try_for_each(|state| out.text(state));
        }
        out.number(self.of_each.iter().flatten().count() as u64)?;
        self.of_each.iter().flatten().try_for_each(|swap| out.text(&swap.state()))
    }

    pub(super) fn read(&mut self, body: &mut &[u8], attributes: usize) -> Outcome<()> {
        const LONGEST: usize = 1 << 20;
        self.of_each.clear();
        self.resumed = body.list(|body| body.text(LONGEST))?;
        if self.resumed.len() > attributes { Err(SnapshotError::Damaged) } else { Ok(()) }
    }

    pub(super) fn is_on(&self) -> bool {
        !self.of_each.is_empty()
    }

    /// Whether an attribute has its values swapped.
    pub(super) fn has(&self, attribute: usize) -> bool {
        matches!(self.of_each.get(attribute), Some(Some(_)))
    }

    /// Asks the gate of an attribute, where [`Swaps::has`] it.
    pub(super) fn observe_many(
        &mut self,
        attribute: usize,
        gate: &mut Gate,
        observations: Observations,
        decisions: &mut [i8],
    ) -> Result<(), Error> {
        let Some(Some(swap)) = self.of_each.get_mut(attribute) else { return Ok(()) };
        let mut swapped = Vec::new();
        swap.observe_many(gate, observations, decisions, &mut swapped)?;
        self.found.extend(swapped.into_iter().map(|(row, value)| (attribute, row, value)));
        Ok(())
    }

    /// Puts what was found into the rows that were asked about.
    pub(super) fn put_into(&mut self, rows: &mut Rows) {
        for (attribute, row, value) in self.found.drain(..) {
            rows.swap(attribute, row, &value);
        }
    }

    /// How many values of each attribute were swapped so far.
    pub(super) fn counts(&self) -> Vec<u64> {
        self.of_each.iter().map(|swap| swap.as_ref().map_or(0, Swap::swapped)).collect()
    }
}
