//! Rows that were read, and what the gates answer about them.

use super::plan::Plan;
use super::rows::{Field, Rows, Spot, SpotKind, Texts};
use super::swaps::Swaps;
use super::way::Tally;
use crate::batch::VEILED;
use crate::column::Column;
use crate::error::Error;
use crate::gate::Gate;
use crate::swap::Observations;

/// Some rows of a block.
pub(super) struct Question<'a> {
    pub(super) plan: &'a Plan,
    pub(super) block: &'a [u8],
    pub(super) rows: &'a Rows,
}

/// One field of all rows.
type Answerable<'a> = Box<dyn Column + 'a>;

/// What is asked about one attribute.
enum Asked<'a> {
    Value(&'a dyn Column),
    /// Coarsest first.
    Levels(Vec<&'a dyn Column>),
}

impl<'a> Asked<'a> {
    fn columns(&self) -> Vec<&'a dyn Column> {
        match self {
            Self::Value(values) => vec![*values],
            Self::Levels(columns) => columns.clone(),
        }
    }
}

impl<'a> Question<'a> {
    /// Asks one gate for each attribute, or several sets of gates of which the first set decides;
    /// without any nothing is decided.
    pub(super) fn ask(
        &self,
        gates: &mut [&mut Gate],
        swaps: &mut Swaps,
        decisions: &mut Vec<Vec<i8>>,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        if gates.is_empty() {
            decisions.clear();
            return Ok(());
        }
        let (count, times) = (self.rows.len(), &self.rows.times[..]);
        let users = self.field(&self.rows.users);
        let each = |columns: &'a [Vec<Spot>]| -> Vec<_> {
            columns.iter().map(|spots| self.field(spots)).collect()
        };
        let (attributes, coarser) = (each(&self.rows.attributes), each(&self.rows.coarser));
        let asked = self.asked(&attributes, &coarser);
        let set = attributes.len().max(1);
        decisions.resize_with(attributes.len(), Vec::new);
        tally.levels.resize_with(gates.len(), Vec::new);
        tally.leaving.resize(gates.len().div_ceil(set), 0);
        let sets = gates.chunks_mut(set).zip(&mut tally.leaving);
        let mut sets: Vec<_> = sets.zip(tally.levels.chunks_mut(set)).collect();
        // The first set comes last: its decisions are those that are written.
        sets.reverse();
        let last = sets.len() - 1;
        for (place, ((gates, leaving), levels)) in sets.into_iter().enumerate() {
            let each = gates.iter_mut().zip(&asked).zip(&mut *decisions).zip(levels);
            for (number, (((gate, asked), decisions), levels)) in each.enumerate() {
                decisions.clear();
                decisions.resize(count, VEILED);
                if place == last && swaps.has(number) {
                    let of_levels = asked.columns();
                    let is_plain = matches!(asked, Asked::Value(_));
                    let observations =
                        Observations { times, users: &*users, levels: &of_levels, is_plain };
                    swaps.observe_many(number, gate, observations, decisions)?;
                    if !is_plain {
                        count_levels(decisions, of_levels.len(), levels);
                    }
                    continue;
                }
                match asked {
                    Asked::Value(values) => {
                        gate.observe_many(times, &*users, *values, decisions)?
                    }
                    Asked::Levels(columns) => {
                        gate.observe_levels_many(times, &*users, columns, decisions)?;
                        count_levels(decisions, columns.len(), levels);
                    }
                }
            }
            *leaving += leaving_rows(decisions, count);
        }
        Ok(())
    }

    fn asked<'b>(
        &self,
        attributes: &'b [Answerable<'b>],
        coarser: &'b [Answerable<'b>],
    ) -> Vec<Asked<'b>> {
        let mut coarser = coarser.iter();
        let one = |(ladder, finest): (_, &'b Answerable<'b>)| match ladder {
            None => Asked::Value(&**finest),
            Some(above) => {
                let mut columns: Vec<&dyn Column> = vec![&**finest];
                columns.extend(coarser.by_ref().take(above).map(|one| -> &dyn Column { &**one }));
                columns.reverse();
                Asked::Levels(columns)
            }
        };
        self.plan.coarser_of_each().zip(attributes).map(one).collect()
    }

    fn field(&self, spots: &'a [Spot]) -> Answerable<'a> {
        // No branch for each, which would be more work than this saves.
        let all = spots.iter().fold(true, |all, spot| all & (spot.kind() == SpotKind::Text));
        if all {
            return Box::new(Texts { block: self.block, spots });
        }
        let may_miss = spots.iter().any(Spot::may_miss);
        Box::new(Field { block: self.block, spots, decoded: &self.rows.decoded, may_miss })
    }
}

/// How many rows have something released.
fn leaving_rows(decisions: &[Vec<i8>], count: usize) -> u64 {
    match decisions {
        // Counted without a branch for each, which could not be predicted.
        [column] => {
            column.iter().fold(0, |sum: u64, one| sum.wrapping_add(u64::from(*one != VEILED)))
        }
        several => {
            let any = |row: &usize| several.iter().any(|column| column[*row] != VEILED);
            (0..count).filter(any).count() as u64
        }
    }
}

fn count_levels(decisions: &[i8], levels: usize, sums: &mut Vec<u64>) {
    sums.resize(levels, 0);
    for decision in decisions {
        // What is veiled is none.
        if let Some(sum) = sums.get_mut(*decision as usize) {
            *sum += 1;
        }
    }
}
