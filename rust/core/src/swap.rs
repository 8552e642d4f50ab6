//! Swapped associations: now and then a released observation leaves under another value.
//!
//! ```text
//! observation ─→ gate ─→ released ─→ a draw below q? ─ no ─→ leaves under its own value
//!                          │              └ yes ─→ a value of the reservoir that is not its own
//!                          ↓                       and passes at this moment ─→ leaves under that
//!                       reservoir: 64 values released lately
//! ```
//!
//! So a record no longer proves that its user showed its value. Nothing leaves that could not: a value
//! comes into the reservoir by being released, and is asked about again when it is drawn, against the
//! same threshold and without counting anyone. Where no other value passes, the observation leaves
//! under its own.
//!
//! A value that comes in takes the place of one that is drawn, not of the oldest: then nobody knows when
//! a value has gone, and from when on a record with it must be true.
//!
//! The draw is a keyed function of user, attribute and time, and rows go one by one: a rerun under
//! the same key repeats every swap, and neither batches nor threads change any.
//!
//! The values themselves are here, and nowhere else in a gate: in memory, a few kilobytes at most,
//! in no snapshot and no message. Who has to go on after a stop keeps them with its state, sealed.

mod state;

use crate::batch::VEILED;
use crate::column::{Column, Role, Value};
use crate::error::Error;
use crate::gate::Gate;
use crate::key::Hasher;
use crate::secret::Secret;
use crate::slot::Key;
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use std::io::Write;
use zeroize::Zeroize;

/// Values that are held; a power of two, so that every odd step goes through all places.
const PLACES: usize = 64;
/// A text of more bytes is not held.
const LONGEST: usize = 256;

/// A value that is held for itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Owned {
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
    Text(Box<[u8]>),
    Bytes(Box<[u8]>),
    Digits(Box<[u8]>),
}

impl Owned {
    /// `None` for a long text, and for a value of which only the hash is there.
    fn of(value: Value) -> Option<Self> {
        let held = |bytes: &[u8]| (bytes.len() <= LONGEST).then(|| Box::from(bytes));
        Some(match value {
            Value::Integer(number) => Self::Integer(number),
            Value::Unsigned(number) => Self::Unsigned(number),
            // The two zeros are one value, and leave as one.
            Value::Float(number) => Self::Float(if number == 0.0 { 0.0 } else { number }),
            Value::Bool(truth) => Self::Bool(truth),
            Value::Text(text) => Self::Text(held(text)?),
            Value::Bytes(bytes) => Self::Bytes(held(bytes)?),
            Value::Digits(digits) => Self::Digits(held(digits)?),
            Value::Prepared(_) => return None,
        })
    }

    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Integer(number) => Value::Integer(*number),
            Self::Unsigned(number) => Value::Unsigned(*number),
            Self::Float(number) => Value::Float(*number),
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Text(text) => Value::Text(text),
            Self::Bytes(bytes) => Value::Bytes(bytes),
            Self::Digits(digits) => Value::Digits(digits),
        }
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Bytes(_))
    }

    /// Appends it in the one spelling of its type. Writing to memory does not fail.
    pub(crate) fn spell(&self, out: &mut Vec<u8>) {
        match self {
            Self::Integer(number) => _ = write!(out, "{number}"),
            Self::Unsigned(number) => _ = write!(out, "{number}"),
            Self::Float(number) => _ = write!(out, "{number:?}"),
            Self::Bool(truth) => _ = write!(out, "{truth}"),
            Self::Text(bytes) | Self::Bytes(bytes) | Self::Digits(bytes) => {
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// Observations of one attribute, in the order in which they came.
#[derive(Clone, Copy)]
pub struct Observations<'a> {
    pub times: &'a [i64],
    pub users: &'a dyn Column,
    /// Coarsest first.
    pub levels: &'a [&'a dyn Column],
    /// The value alone, which is no level: another name space.
    pub is_plain: bool,
}

impl Observations<'_> {
    fn check(&self, decisions: usize) -> Result<(), Error> {
        let (times, users) = (self.times.len(), self.users.len());
        for level in self.levels {
            if times != users || users != level.len() || times != decisions {
                return Err(Error::Lengths { times, users, attributes: level.len() });
            }
        }
        Ok(())
    }
}

/// What was drawn for an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// It leaves under another value, if there is one.
    pub swaps: bool,
    /// The place of the reservoir that is looked at first, and the way to the next.
    pub start: usize,
    pub step: usize,
    /// The place that its own value takes, once all are taken.
    pub place: usize,
}

impl Draw {
    /// All places, each once.
    fn places(self) -> impl Iterator<Item = usize> {
        (0..PLACES).map(move |number| (self.start + number * self.step) % PLACES)
    }
}

/// A value that was released, and what the gate knows it by: the whole path of its level.
struct Released {
    key: Key,
    value: Owned,
}

/// Swaps the values of one attribute, beside its gate.
pub struct Swap {
    cipher: Aes128,
    /// So many of 2^64 draws are swaps.
    share: u64,
    reservoir: Vec<Released>,
    swapped: u64,
}

impl Swap {
    /// `secret` is that of the gate.
    pub fn new(probability: f64, secret: &Secret) -> Result<Self, Error> {
        if !(0.0..1.0).contains(&probability) {
            let rule = "expected a share from 0 to less than 1".to_owned();
            return Err(Error::Setting { parameter: "swap", rule, got: probability.to_string() });
        }
        let mut key: [u8; 16] = secret.derive("swap");
        let cipher = Aes128::new(&key.into());
        key.zeroize();
        let share = (probability * 2_f64.powi(64)) as u64;
        Ok(Self { cipher, share, reservoir: Vec::new(), swapped: 0 })
    }

    /// Observations that left under another value so far.
    pub fn swapped(&self) -> u64 {
        self.swapped
    }

    /// Decides observations as the gate does: the level released or [`VEILED`]. Appends the rows that
    /// leave under another value, in order, with that value.
    pub fn observe_many(
        &mut self,
        gate: &mut Gate,
        observations: Observations,
        decisions: &mut [i8],
        swapped: &mut Vec<(usize, Owned)>,
    ) -> Result<(), Error> {
        observations.check(decisions.len())?;
        let Observations { times, users, levels: columns, is_plain } = observations;
        let mut levels = Vec::with_capacity(columns.len());
        for (row, decision) in decisions.iter_mut().enumerate() {
            let (time, user) = (times[row], users.value(row));
            levels.clear();
            levels.extend(columns.iter().map(|column| column.value(row)));
            let released = match levels[..] {
                [value] if is_plain => gate.observe(time, user, value).then_some(0),
                _ => gate.observe_levels(time, user, &levels)?,
            };
            *decision = VEILED;
            let Some(level) = released else { continue };
            *decision = level as i8;
            if let Some(other) = self.exchange(gate, time, user, &levels, level, is_plain) {
                swapped.push((row, other));
            }
        }
        Ok(())
    }

    /// Takes in the value of an observation that was released at a level; the other value, if it is to
    /// leave under another.
    fn exchange(
        &mut self,
        gate: &Gate,
        time: i64,
        user: Option<Value>,
        levels: &[Option<Value>],
        level: usize,
        is_plain: bool,
    ) -> Option<Owned> {
        let keys = gate.keys(levels, is_plain);
        let own = *keys.get(level)?;
        let draw = self.draw_of(&gate.hasher, time, user?, *keys.last()?)?;
        let mut other = None;
        if draw.swaps {
            let mut found = draw.places().filter_map(|place| self.reservoir.get(place));
            let passes = |it: &&Released| it.key != own && gate.passes_key(it.key, time);
            other = found.find(passes).map(|found| found.value.clone());
        }
        self.swapped += u64::from(other.is_some());
        if let Some(value) = levels[level].and_then(Owned::of) {
            let released = Released { key: own, value };
            if self.reservoir.len() < PLACES {
                self.reservoir.push(released);
            } else {
                self.reservoir[draw.place] = released;
            }
        }
        other
    }

    /// What is drawn for an observation; `None` where something is missing. It is secret: it tells
    /// which records are true.
    pub fn draw(
        &self,
        gate: &Gate,
        time: i64,
        user: Option<Value>,
        levels: &[Option<Value>],
        is_plain: bool,
    ) -> Option<Draw> {
        self.draw_of(&gate.hasher, time, user?, *gate.keys(levels, is_plain).last()?)
    }

    fn draw_of(&self, hasher: &Hasher, time: i64, user: Value, finest: Key) -> Option<Draw> {
        let user = hasher.user(hasher.block(user, Role::User)?, finest.hash);
        let mut block = (u128::from(user) << 64 | u128::from(time as u64)).to_be_bytes();
        self.cipher.encrypt_block((&mut block).into());
        let drawn = u128::from_be_bytes(block);
        Some(Draw {
            swaps: ((drawn >> 64) as u64) < self.share,
            start: drawn as usize % PLACES,
            step: ((drawn >> 16) as usize % PLACES) | 1,
            place: (drawn >> 32) as usize % PLACES,
        })
    }
}

impl Gate {
    /// Whether z users (with noise: as many as it needs) are there for an attribute at this time, or
    /// at the attribute's clock if that is later. Counts nobody.
    pub fn passes(&self, time: i64, attribute: Option<Value>) -> bool {
        self.keys(&[attribute], true).iter().any(|key| self.passes_key(*key, time))
    }

    /// The same for each level, coarsest first.
    pub fn levels_pass(&self, time: i64, levels: &[Option<Value>]) -> Vec<bool> {
        let (there, _) = self.level_hashes(levels);
        let each = self.keys(levels, false).into_iter().zip(there);
        each.map(|(key, there)| there && self.passes_key(key, time)).collect()
    }

    fn passes_key(&self, key: Key, time: i64) -> bool {
        let is_late = time < self.admission.clock;
        self.shards[self.deal.shard(key)].passes(key, time, is_late, &self.rules)
    }

    /// What the levels are known by; none for a plain value that is none.
    fn keys(&self, levels: &[Option<Value>], is_plain: bool) -> Vec<Key> {
        if !is_plain {
            let (_, hashes) = self.level_hashes(levels);
            return hashes.iter().map(|hash| Key::new(*hash, hashes[0])).collect();
        }
        let block = |value: &Option<Value>| self.hasher.block((*value)?, Role::Attribute);
        let mut hashes: Vec<_> = levels.iter().filter_map(block).collect();
        self.hasher.attributes(&mut hashes, None);
        hashes.iter().map(|hash| Key::new(*hash, *hash)).collect()
    }
}

#[cfg(test)]
mod tests;
