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
        // Hashes of another gate's secret would be those of other values. Any text tells them apart; a
        // number would not, since it is hashed later.
        let gate_told = gate.prepare(Value::Text(b"whose"), role);
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{StringArray, StringViewArray};
    use std::sync::Arc;
    use zveil_core::{Secret, Settings};

    const USERS: [Option<&str>; 8] = [
        Some("ada"),
        Some("bob"),
        None,
        Some("7"),
        Some("eve"),
        Some("ada"),
        Some(""),
        Some("bob"),
    ];
    const VALUES: [Option<&str>; 8] =
        [Some("a"), Some("a"), Some("a"), None, Some("a"), Some("b"), Some("b"), Some("b")];

    fn gate(secret: u8) -> Gate {
        Gate::new(Settings::new(2, 60), Secret::new([secret; 32])).unwrap()
    }

    fn coded(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(values.iter().copied().collect::<DictionaryArray<Int32Type>>())
    }

    fn decided(gate: &mut Gate, columns: [&ArrayRef; 2], hashes: &mut [Hashes; 2]) -> Vec<i8> {
        let [users, values] = columns;
        let [of_users, of_values] = hashes;
        of_users.prepare(users, Role::User, gate).unwrap();
        of_values.prepare(values, Role::Attribute, gate).unwrap();
        let mut decisions = vec![0; users.len()];
        let (users, values) = (of_users.column(users), of_values.column(values));
        gate.observe_many(&vec![1; users.len()], &*users, &*values, &mut decisions).unwrap();
        decisions
    }

    #[test]
    fn what_was_hashed_is_decided_as_what_was_not() {
        let plain: [ArrayRef; 2] = [USERS, VALUES]
            .map(|texts| -> ArrayRef { Arc::new(StringViewArray::from_iter(texts)) });
        let words = [coded(&USERS), coded(&VALUES)];
        for columns in [[&plain[0], &plain[1]], [&words[0], &words[1]], [&words[0], &plain[1]]] {
            for rows in [0..8, 0..2, 4..8] {
                let (mut one, mut other) = (gate(1), gate(1));
                let columns = columns.map(|column| column.slice(rows.start, rows.len()));
                let found = decided(&mut one, [&columns[0], &columns[1]], &mut Default::default());
                let users = column(&columns[0], Role::User, None).unwrap();
                let values = column(&columns[1], Role::Attribute, None).unwrap();
                let mut wanted = vec![0; rows.len()];
                other.observe_many(&vec![1; rows.len()], &*users, &*values, &mut wanted).unwrap();
                assert_eq!(found, wanted);
            }
        }
    }

    #[test]
    fn words_are_hashed_anew_for_another_dictionary_and_for_another_gate() {
        let words: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let other: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let of = |words: &ArrayRef| -> ArrayRef {
            Arc::new(DictionaryArray::<Int32Type>::new(vec![0, 1, 0].into(), words.clone()))
        };
        let mut hashes = Hashes::default();
        hashes.prepare(&of(&words), Role::Attribute, &gate(1)).unwrap();
        let first = hashes.all().to_vec();
        hashes.prepare(&of(&words), Role::Attribute, &gate(2)).unwrap();
        assert_ne!(hashes.all(), first);
        hashes.prepare(&of(&other), Role::Attribute, &gate(1)).unwrap();
        assert_eq!(hashes.all(), first);
    }
}
