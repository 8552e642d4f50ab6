//! Words of dictionaries, hashed once by the gate that is going to be asked about them.

use super::words::is_same;
use crate::columns::column;
use crate::unsupported::Unsupported;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray};
use zveil_core::{Column, Gate, Prepared, Prepares, Role, Value};

/// The values of one column as one gate hashes them; of a dictionary only when it is a new one.
#[derive(Default)]
pub(super) struct Hashes {
    /// The dictionary whose words are hashed, and what told the gate that did it.
    of: Option<(ArrayRef, Option<Value<'static>>)>,
    prepared: Prepared,
}

impl Hashes {
    /// Hashes a column, or the words of its dictionary if they are not yet.
    pub(super) fn prepare(
        &mut self,
        values: &ArrayRef,
        role: Role,
        gate: &Gate,
    ) -> Result<(), Unsupported> {
        let Some(coded) = values.as_dictionary_opt::<Int32Type>() else {
            self.of = None;
            gate.prepare_all(&*column(values, role, None)?, role, &mut self.prepared);
            return Ok(());
        };
        let words = coded.values();
        // Hashes of another gate's secret would be those of other values.
        let gate_told = gate.prepare(Value::Integer(0), role);
        let is_known = |(other, told): &(ArrayRef, _)| is_same(other, words) && *told == gate_told;
        if !self.of.as_ref().is_some_and(is_known) {
            gate.prepare_all(&*column(words, role, None)?, role, &mut self.prepared);
            self.of = Some((ArrayRef::clone(words), gate_told));
        }
        Ok(())
    }

    /// The column that was prepared last, for the gate.
    pub(super) fn column<'a>(&'a self, values: &'a ArrayRef) -> Box<dyn Column + 'a> {
        let coded = values.as_dictionary_opt::<Int32Type>();
        Box::new(Hashed { coded, prepared: &self.prepared })
    }

    /// Of each row, or of each word of a dictionary.
    pub(super) fn all(&self) -> &[u128] {
        self.prepared.hashes()
    }
}

/// Rows that were hashed, or numbers of words that were.
struct Hashed<'a> {
    coded: Option<&'a DictionaryArray<Int32Type>>,
    prepared: &'a Prepared,
}

impl Column for Hashed<'_> {
    fn len(&self) -> usize {
        self.coded.map_or(self.prepared.len(), Array::len)
    }

    fn value(&self, row: usize) -> Option<Value<'_>> {
        let Some(coded) = self.coded else { return self.prepared.value(row) };
        let keys = coded.keys();
        if keys.is_null(row) {
            return None;
        }
        self.prepared.value(usize::try_from(keys.value(row)).ok()?)
    }

    fn may_miss(&self) -> bool {
        self.coded.is_some_and(|coded| coded.null_count() > 0) || self.prepared.may_miss()
    }

    fn prepared(&self) -> Option<(&[u128], Option<&[i32]>)> {
        let (blocks, _) = self.prepared.prepared().filter(|_| !self.may_miss())?;
        Some((blocks, self.coded.map(|coded| &coded.keys().values()[..])))
    }
}
