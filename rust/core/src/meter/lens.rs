//! What an observer sees, as keyed words: who, and which value of which field.
//!
//! ```text
//! user    U = E_user(block of the pseudonym)           128 bits
//! field   T = E_user(block of its name)                keeps fields apart
//! value   V = E_attribute(block of the value ^ T)      128 bits
//! ```
//!
//! The keys are the meter's own, derived from its secret: what it holds has nothing in common with
//! what gates hold.

use crate::column::{Blocks, Column, Role, Value};
use crate::key::Hasher;
use crate::secret::Secret;

/// One value that was seen under one pseudonym.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    pub(crate) user: u128,
    pub(crate) value: u128,
    /// Says which period it was.
    pub(crate) time: i64,
    /// The number of the record among those that are taken in together.
    pub(crate) row: u32,
}

/// A field, by what keeps its values apart from those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field(u128);

impl Field {
    pub(super) fn tweak(self) -> u128 {
        self.0
    }
}

/// Makes words of users and values.
pub struct Lens {
    hasher: Hasher,
    spread: u64,
}

impl Lens {
    pub(super) fn new(secret: &Secret) -> Self {
        let hasher = Hasher::new(&Secret::new(secret.derive("meter")));
        Self { hasher, spread: u64::from_le_bytes(secret.derive("meter: spread")) }
    }

    pub(super) fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// A secret number to scatter things by.
    pub(super) fn spread(&self) -> u64 {
        self.spread
    }

    pub fn field(&self, name: &str) -> Field {
        let block = self.hasher.block(Value::Text(name.as_bytes()), Role::Attribute);
        let mut word = [block.unwrap_or_default()];
        self.hasher.user_words(&mut word);
        Field(word[0])
    }

    /// `None` where the value cannot be a user.
    pub fn user(&self, user: Value) -> Option<u128> {
        let mut word = [self.hasher.block(user, Role::User)?];
        self.hasher.user_words(&mut word);
        Some(word[0])
    }

    /// `None` for no number, which is no value.
    pub fn value(&self, field: Field, value: Value) -> Option<u128> {
        let mut word = [self.hasher.block(value, Role::Attribute)? ^ field.0];
        self.hasher.attributes(&mut word, None);
        Some(word[0])
    }

    /// One value that left under one user; `None` where one of them is none.
    pub fn sight(&self, time: i64, user: Value, field: Field, value: Value) -> Option<Sight> {
        Some(Sight { user: self.user(user)?, value: self.value(field, value)?, time, row: 0 })
    }

    /// Hashes a value once that is going to come many times, such as a dictionary's.
    pub(super) fn prepare(&self, value: Value, role: Role) -> Option<Value<'static>> {
        self.hasher.block(value, role).map(Value::Prepared)
    }

    /// Appends the words of some rows of two columns, counted from `start`; rows that lack something are
    /// left out.
    pub(super) fn look(
        &self,
        seen: Seen,
        (start, rows): (usize, &[u32]),
        desk: &mut Desk,
        out: &mut Vec<Sight>,
    ) {
        let Desk { users, values, valid } = desk;
        let Seen { times, users: who, values: what, field } = seen;
        if let (Some(users), Some(values)) = (who.words(), what.words()) {
            // The shortest way.
            let (users, values, times) = (&users[start..], &values[start..], &times[start..]);
            self.hasher.row_words(users, values, rows, field.0, |row, user, value| {
                let time = times[row as usize];
                if time != i64::MIN {
                    out.push(Sight { user, value, time, row });
                }
            });
            return;
        }
        valid.clear();
        valid.resize(rows.len(), true);
        self.blocks(who, Role::User, (start, rows), users, valid);
        self.blocks(what, Role::Attribute, (start, rows), values, valid);
        self.hasher.user_words(users);
        values.iter_mut().for_each(|value| *value ^= field.0);
        self.hasher.attributes(values, None);
        let words = users.iter().zip(&*values).zip(rows).zip(&*valid);
        out.extend(words.filter_map(|(((user, value), row), valid)| {
            let time = times[start + *row as usize];
            let is_whole = *valid && time != i64::MIN;
            is_whole.then_some(Sight { user: *user, value: *value, time, row: *row })
        }));
    }

    fn blocks(
        &self,
        column: &dyn Column,
        role: Role,
        (start, rows): (usize, &[u32]),
        out: &mut Vec<u128>,
        valid: &mut [bool],
    ) {
        out.resize(rows.len(), 0);
        column.blocks(Blocks { hasher: &self.hasher, role, start, rows, out, valid });
    }
}

/// Columns of what was seen of one field.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) times: &'a [i64],
    pub(super) users: &'a dyn Column,
    pub(super) values: &'a dyn Column,
    pub(super) field: Field,
}

/// Scratch of [`Lens::look`].
#[derive(Default)]
pub(super) struct Desk {
    users: Vec<u128>,
    values: Vec<u128>,
    valid: Vec<bool>,
}
