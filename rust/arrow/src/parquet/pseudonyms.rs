//! What users leave as: of a dictionary, each word is made into a pseudonym once.

use super::words::{Left, Words, is_same};
use crate::columns::column;
use crate::times::{NO_TIME, Scale, times};
use crate::unsupported::Unsupported;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, LargeStringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use std::borrow::Cow;
use std::sync::Arc;
use zveil_core::{Keyring, Named, Role};

use super::act::ActError;

/// Users whose pseudonyms are made in one go.
const SOME: usize = 1024;
/// Letters of most pseudonyms.
const LETTERS: usize = 20;
/// A word whose pseudonym is not made, and one that cannot have any.
const UNMADE: u32 = u32::MAX;
const NOBODY: u32 = u32::MAX - 1;

/// Users of one stream, as they leave.
#[derive(Default)]
pub(super) struct Pseudonyms {
    /// The dictionary whose words were made, and the period whose key they were made under.
    of: Option<(ArrayRef, i64)>,
    /// For each word of it the number of its pseudonym.
    numbers: Vec<u32>,
    has_nobody: bool,
    words: Words,
    /// Counts the lists of pseudonyms, so that the numbers of one are not taken for another's.
    list: u64,
    named: Named,
}

impl Pseudonyms {
    /// Finds the keys of the next records. The time of every record counts, also of those that do not
    /// leave.
    pub(super) fn name(
        &mut self,
        times_of_all: &ArrayRef,
        unit: i64,
        leaves: Option<&BooleanBuffer>,
        keyring: &mut Keyring,
    ) -> Result<(), ActError> {
        let scale = Scale { unit, beyond: NO_TIME };
        let moments = if keyring.rotates() { times(times_of_all, scale)? } else { Cow::default() };
        let leaves = |row| leaves.is_none_or(|leaves: &BooleanBuffer| leaves.value(row));
        keyring.name(&moments, leaves, &mut self.named)?;
        Ok(keyring.settle()?)
    }

    /// What the users of those records leave as that do.
    pub(super) fn of(
        &mut self,
        users: &ArrayRef,
        leaves: Option<&BooleanBuffer>,
    ) -> Result<Left<'_>, ActError> {
        match (users.as_dictionary_opt::<Int32Type>(), self.named.only()) {
            (Some(coded), Some(period)) => Ok(self.of_words(coded, period)?),
            _ => one_by_one(users, leaves, &self.named),
        }
    }

    /// Begins another list of words, so that it has none but those that leave from here on.
    pub(super) fn begin_list(&mut self) {
        self.of = None;
    }

    /// All are under one key: it is enough to make the pseudonym of each word.
    fn of_words(
        &mut self,
        users: &DictionaryArray<Int32Type>,
        period: i64,
    ) -> Result<Left<'_>, Unsupported> {
        let ids = users.values();
        let is_known = |(other, of): &(ArrayRef, i64)| *of == period && is_same(other, ids);
        if !self.of.as_ref().is_some_and(is_known) {
            self.of = Some((ArrayRef::clone(ids), period));
            self.words.clear();
            self.has_nobody = false;
            self.numbers.clear();
            self.numbers.resize(ids.len(), UNMADE);
            self.list += 1;
        }
        let keys = users.keys();
        // A loop so short that the CPU waits for a dozen of them at once; most were made before.
        let of_key = |key: &i32| self.numbers.get(*key as usize).copied().unwrap_or(NOBODY);
        let mut codes: Vec<u32> = keys.values().iter().map(of_key).collect();
        let mut fresh = Vec::new();
        if codes.contains(&UNMADE) {
            for (row, code) in codes.iter_mut().enumerate().filter(|(_, code)| **code == UNMADE) {
                // The key of a row without a user may be any, and nobody's pseudonym is made.
                if keys.is_valid(row) {
                    let key = keys.value(row) as usize;
                    if self.numbers[key] == UNMADE {
                        self.numbers[key] = (self.words.len() + fresh.len()) as u32;
                        fresh.push(key);
                    }
                    *code = self.numbers[key];
                }
            }
        }
        self.make(ids, &fresh)?;
        let mut nulls = keys.nulls().cloned();
        if self.has_nobody {
            let is_user = |key: usize| self.numbers.get(key).is_some_and(|one| *one != NOBODY);
            let values = keys.values();
            let users =
                BooleanBuffer::collect_bool(values.len(), |row| is_user(values[row] as usize));
            nulls = NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::new(users)));
        }
        Ok(Left::Coded { codes, nulls, words: &self.words, list: self.list })
    }

    /// Makes the pseudonyms of some words, next in their list.
    fn make(&mut self, ids: &ArrayRef, fresh: &[usize]) -> Result<(), Unsupported> {
        let ids = column(ids, Role::User, None)?;
        let mut found = Vec::new();
        for part in fresh.chunks(SOME) {
            // One key for all records, so that it does not matter which.
            self.named.pseudonyms(part.iter().map(|id| (0, ids.value(*id))), &mut found);
            for (name, id) in found.iter().zip(part) {
                self.words.push(|letters| match name {
                    Some(name) => name.put(letters),
                    None => {
                        self.numbers[*id] = NOBODY;
                        self.has_nobody = true;
                    }
                });
            }
        }
        Ok(())
    }
}

fn one_by_one<'a>(
    users: &ArrayRef,
    leaves: Option<&BooleanBuffer>,
    named: &Named,
) -> Result<Left<'a>, ActError> {
    let count = users.len();
    let users = column(users, Role::User, None)?;
    let mut letters = Vec::with_capacity(LETTERS * count);
    let mut ends: Vec<i64> = Vec::with_capacity(count + 1);
    ends.push(0);
    let mut missing = Vec::new();
    let mut found = Vec::new();
    let mut records: Box<dyn Iterator<Item = usize>> = match leaves {
        Some(leaves) => Box::new(leaves.set_indices()),
        None => Box::new(0..count),
    };
    let mut part: Vec<usize> = Vec::with_capacity(SOME);
    for first in (0..count).step_by(SOME) {
        part.clear();
        part.extend(records.by_ref().take(SOME));
        let of_part = part.iter().zip(first..).map(|(record, at)| (*record, users.value(at)));
        named.pseudonyms(of_part, &mut found);
        for (one, at) in found.iter().zip(first..) {
            match one {
                Some(name) => name.put(&mut letters),
                None => missing.push(at),
            }
            ends.push(letters.len() as i64);
        }
    }
    let nulls = (!missing.is_empty()).then(|| {
        let mut present = vec![true; count];
        missing.iter().for_each(|at| present[*at] = false);
        NullBuffer::from(present)
    });
    let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
    let values = LargeStringArray::try_new(ends, letters.into(), nulls)?;
    Ok(Left::Values(Arc::new(values)))
}
