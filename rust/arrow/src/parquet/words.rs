//! Columns as they leave the act: values, or numbers of words that came once.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use std::borrow::Cow;

/// Words one behind the other, by their numbers.
#[derive(Debug, Default)]
pub struct Words {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Words {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[start..self.ends[number]]
    }

    /// Adds the word that `put` writes.
    pub(super) fn push(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        put(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

static NO_WORDS: Words = Words { bytes: Vec::new(), ends: Vec::new() };

/// A column of what leaves.
#[derive(Debug)]
pub enum Left<'a> {
    /// Values; of text perhaps as a dictionary, in which words may be that do not leave.
    Values(ArrayRef),
    /// Text whose values were hashed by a gate: each row, or each word of a dictionary.
    Hashed { values: ArrayRef, hashes: Cow<'a, [u128]> },
    /// Numbers of words. `list` is another number whenever a number means another word.
    Coded { codes: Vec<u32>, nulls: Option<NullBuffer>, words: &'a Words, list: u64 },
}

impl Left<'_> {
    /// A column of no rows, to stand where one is taken away.
    pub(super) fn nothing() -> Self {
        Self::Coded { codes: Vec::new(), nulls: None, words: &NO_WORDS, list: 0 }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Values(values) | Self::Hashed { values, .. } => values.len(),
            Self::Coded { codes, .. } => codes.len(),
        }
    }
}

impl From<ArrayRef> for Left<'_> {
    fn from(values: ArrayRef) -> Self {
        Self::Values(values)
    }
}

/// Whether two dictionaries are the same one: where their words lie in memory, not what they are.
/// Only good while both are held.
pub(super) fn is_same(one: &ArrayRef, other: &ArrayRef) -> bool {
    let place = |words: &ArrayRef| match words.data_type() {
        DataType::Utf8 => {
            let words = words.as_string::<i32>();
            Some((words.value_offsets().as_ptr(), words.value_data().as_ptr()))
        }
        DataType::Binary => {
            let words = words.as_binary::<i32>();
            Some((words.value_offsets().as_ptr(), words.value_data().as_ptr()))
        }
        _ => None,
    };
    one.len() == other.len() && place(one).is_some_and(|found| place(other) == Some(found))
}
