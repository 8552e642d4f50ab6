//! A keyring as it is kept, and a chain whose file waits for that.
//!
//! ```text
//! state: clock, period p of the oldest key ─→ saved, safe on disk ─→ move on: the file has p's key
//!        keys before p are gone from memory     a crash: the file has p's key or one before it,
//!                                               and goes on to p as the stream did
//! ```
//!
//! A chain that is held forgets its keys no later than the state that is saved next: up to then the
//! output since the last one could be made again, and is.

use super::{Keyring, Keys, Moving};
use crate::codec::{Body, Out, Outcome};
use crate::error::{Error, SnapshotError};
use crate::pseudonym::chain::Chain;
use crate::secret::Secret;
use zeroize::Zeroize;

const FORMAT: u64 = 1;
/// States that the file may have to move on to; one is being saved and another may come.
const MOST_KEPT: usize = 8;

/// What a state of a chain says.
struct Told {
    clock: i64,
    /// The periods of the oldest key, and of the key that the chain began with.
    first: Option<i64>,
    begun: Option<i64>,
    /// Only where no file has it.
    key: Option<Secret>,
}

impl Keyring {
    /// Bytes from which another keyring of the same key or file goes on. A chain that has no file has
    /// its key in it.
    pub fn state(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing to memory does not fail.
        let _ = match &mut self.keys {
            Keys::Fixed(_) | Keys::Kept(_) => out.number(FORMAT).and_then(|()| out.number(0)),
            Keys::Moving(moving) => moving.write(&mut out),
        };
        out
    }

    /// Goes on from a state.
    pub fn resume(&mut self, state: &[u8]) -> Result<(), Error> {
        let told = read(state).map_err(|_| Error::State("is none that a keyring was saved as"))?;
        match (&mut self.keys, told) {
            (Keys::Fixed(_) | Keys::Kept(_), None) => Ok(()),
            (Keys::Moving(moving), Some(told)) => moving.resume(told),
            _ => Err(Error::State("is of another kind of keys")),
        }
    }

    /// From now on the file of a chain moves on only when it is told to.
    pub fn hold(&mut self) {
        if let Keys::Moving(moving) = &mut self.keys {
            moving.is_held = true;
        }
    }

    /// Lets the file of a chain move on to where this state is, or the last one.
    pub fn move_on(&mut self, state: Option<&[u8]>) -> Result<(), Error> {
        let Keys::Moving(moving) = &mut self.keys else { return Ok(()) };
        let first = match state {
            Some(state) => {
                let told = read(state).ok().flatten();
                told.ok_or(Error::State("is none that a keyring was saved as"))?.first
            }
            None => moving.kept.last().map(|(first, _)| *first),
        };
        let Some(first) = first else { return Ok(()) };
        moving.move_on(first)
    }
}

impl Moving {
    fn write(&mut self, out: &mut Vec<u8>) -> Outcome<()> {
        let first = self.chain.first();
        if let (Some(first), true, Some(_)) = (first, self.is_held, &self.file)
            && self.kept.last().is_none_or(|(last, _)| *last != first)
        {
            if self.kept.len() == MOST_KEPT {
                self.kept.remove(0);
            }
            self.kept.push((first, self.chain.first_key().clone()));
        }
        out.number(FORMAT)?;
        out.number(1)?;
        out.number(self.admission.clock as u64)?;
        out.maybe(first)?;
        out.maybe(self.begun)?;
        out.number(u64::from(self.file.is_none()))?;
        if self.file.is_none() {
            out.bytes(self.chain.first_key().bytes())?;
        }
        Ok(())
    }

    fn resume(&mut self, told: Told) -> Result<(), Error> {
        match (&self.file, told.key) {
            (Some(_), None) => {}
            (None, Some(key)) => self.chain = Chain::new(key, told.first),
            _ => return Err(Error::State("is of another kind of keys")),
        }
        self.begun = self.begun.or(told.begun);
        if let Some(wanted) = told.first {
            if let (None, Some(begun)) = (self.chain.first(), told.begun) {
                // The file has the key that it began with, and does not know its period.
                self.chain.reach(begun, begun)?;
            }
            if self.chain.first().is_some_and(|first| first > wanted) {
                return Err(Error::State(
                    "is older than what the file of the chain has moved on to; its keys are gone",
                ));
            }
            self.chain.reach(wanted, wanted)?;
        }
        self.admission.clock = told.clock;
        self.plain = None;
        Ok(())
    }

    fn move_on(&mut self, first: i64) -> Result<(), Error> {
        let Some(place) = self.kept.iter().position(|(period, _)| *period == first) else {
            return Ok(());
        };
        if let Some(file) = &mut self.file
            && self.saved != Some(first)
        {
            file.write(&self.kept[place].1, Some(first))?;
            self.saved = Some(first);
        }
        // It is in the file now, and those before it are not needed any more. Each overwrites itself.
        self.kept.drain(..=place);
        Ok(())
    }
}

fn read(state: &[u8]) -> Outcome<Option<Told>> {
    let mut body = state;
    if body.number()? != FORMAT {
        return Err(SnapshotError::Damaged);
    }
    let told = if body.truth()? {
        let (clock, first, begun) = (body.number()? as i64, body.maybe()?, body.maybe()?);
        let key = if body.truth()? {
            let mut bytes: [u8; 32] = body.array()?;
            let key = Secret::new(bytes);
            bytes.zeroize();
            Some(key)
        } else {
            None
        };
        Some(Told { clock, first, begun, key })
    } else {
        None
    };
    body.end()?;
    Ok(told)
}
