//! What an observer sees of the records that leave, for a meter.

use super::Renderer;
use super::plain::Leaving;
use crate::batch::VEILED;
use crate::column::Value;
use crate::error::Error;
use crate::gate::Gate;
use crate::ladder::text_of;
use crate::meter::{Field, Lens, LiveMeter, Sight};
use crate::text::plan::{ATTRIBUTES, Output, Plan, TextFormat};
use crate::text::render::Written;
use crate::text::rows::{Rows, Spot, SpotKind, value, word};
use std::sync::Arc;

/// Looks at the output, as whoever reads it does.
#[derive(Clone)]
pub(crate) struct Watch {
    lens: Arc<Lens>,
    fields: Vec<Field>,
    /// The output knows no types: the number 1 and the text "1" look the same in it.
    is_untyped: bool,
    /// A text without letters looks like nothing in it.
    hides_empty: bool,
}

impl Watch {
    pub(crate) fn new(lens: Arc<Lens>, plan: &Plan) -> Self {
        let names = plan.fields.iter().skip(ATTRIBUTES).take(plan.attributes);
        Self {
            fields: names.map(|name| lens.field(name)).collect(),
            lens,
            is_untyped: plan.output != Output::Text(TextFormat::Ndjson),
            hides_empty: matches!(plan.output, Output::Text(TextFormat::Csv(_))),
        }
    }

    pub(crate) fn is_of(&self, lens: &Arc<Lens>) -> bool {
        Arc::ptr_eq(&self.lens, lens)
    }

    /// Looks at the rows of one part that leave.
    pub(super) fn look(&self, of: &Renderer, leaving: &Leaving, sights: &mut Vec<Sight>) {
        let Leaving { block, rows, leaving, decisions, made } = *leaving;
        let (mut spelled, mut name) = (Vec::new(), Vec::new());
        for (place, row) in leaving.iter().map(|row| *row as usize).enumerate() {
            let mut user = None;
            for (attribute, field) in self.fields.iter().copied().enumerate() {
                let is_veiled = |column: &Vec<i8>| column[row] == VEILED;
                if decisions.get(attribute).is_none_or(is_veiled) {
                    continue;
                }
                let label = of.label(rows, row, attribute, decisions);
                let spot = label.unwrap_or(rows.attributes[attribute][row]);
                spelled.clear();
                let value = self.value(spot, block, rows, &mut spelled);
                let Some(value) = value.and_then(|value| self.lens.value(field, value)) else {
                    continue;
                };
                // Who it is to an observer: the name that leaves.
                user = user.or_else(|| match made {
                    None => self.lens.user(super::value(rows.users[row], block, &rows.decoded)?),
                    Some(made) => {
                        name.clear();
                        (*made.get(place)?)?.put(&mut name);
                        self.lens.user(Value::Text(&name))
                    }
                });
                let Some(user) = user else { break };
                sights.push(Sight { user, value, time: rows.times[row], row: row as u32 });
            }
        }
    }

    /// A value as it looks in the output.
    fn value<'a>(
        &self,
        spot: Spot,
        block: &'a [u8],
        rows: &'a Rows,
        spelled: &'a mut Vec<u8>,
    ) -> Option<Value<'a>> {
        let decoded = &rows.decoded;
        let found = match spot.kind() {
            SpotKind::SwappedText => Value::Text(spot.of(decoded)),
            SpotKind::SwappedWord => word(spot.of(decoded))?,
            _ => value(spot, block, decoded)?,
        };
        if !self.is_untyped {
            return Some(found);
        }
        let text = text_of(found, spelled)?;
        (!text.is_empty() || !self.hides_empty).then_some(Value::Text(text))
    }
}

impl LiveMeter {
    /// Takes in what was seen of what was written, in its order. Then time is where the gates are:
    /// not before, for what came first may be of a period that is over by now.
    pub fn take_in(&mut self, written: &mut [Written], gates: &[&mut Gate]) -> Result<(), Error> {
        let count = written.iter().map(|part| part.sights.len()).sum();
        let seen = written.iter_mut().map(|part| std::mem::take(&mut part.sights));
        self.count(seen, count, gates.iter().map(|gate| &**gate))
    }
}
