//! A swap as it is kept: the values released lately, what the gate knows them by, and the count.

use super::{LONGEST, Owned, PLACES, Released, Swap};
use crate::codec::{Body, Out, Outcome};
use crate::error::{Error, SnapshotError};
use crate::slot::Key;

const FORMAT: u64 = 1;

impl Swap {
    /// Bytes from which another swap of the same gate goes on. Values are in it.
    pub fn state(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing to memory does not fail.
        let _ = self.write(&mut out);
        out
    }

    pub fn resume(&mut self, state: &[u8]) -> Result<(), Error> {
        let mut body = state;
        let read = Self::read(&mut body).and_then(|read| body.end().map(|()| read));
        let (swapped, reservoir) =
            read.map_err(|_| Error::State("is none that a swap was saved as"))?;
        (self.swapped, self.reservoir) = (swapped, reservoir);
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) -> Outcome<()> {
        out.number(FORMAT)?;
        out.number(self.swapped)?;
        out.number(self.reservoir.len() as u64)?;
        for Released { key, value } in &self.reservoir {
            out.number(key.hash)?;
            out.bytes(&key.check.to_le_bytes())?;
            match value {
                Owned::Integer(number) => tagged(out, 0, &number.to_le_bytes())?,
                Owned::Unsigned(number) => tagged(out, 1, &number.to_le_bytes())?,
                Owned::Float(number) => tagged(out, 2, &number.to_le_bytes())?,
                Owned::Bool(truth) => tagged(out, 3, &[u8::from(*truth)])?,
                Owned::Text(text) => tagged(out, 4, text)?,
                Owned::Bytes(bytes) => tagged(out, 5, bytes)?,
                Owned::Digits(digits) => tagged(out, 6, digits)?,
            }
        }
        Ok(())
    }

    fn read(body: &mut &[u8]) -> Outcome<(u64, Vec<Released>)> {
        if body.number()? != FORMAT {
            return Err(SnapshotError::Damaged);
        }
        let swapped = body.number()?;
        let reservoir = body.list(|body| {
            let key = Key { hash: body.number()?, check: u32::from_le_bytes(body.array()?) };
            Ok(Released { key, value: owned(body)? })
        })?;
        let are_keys = reservoir.iter().all(|one| one.key.check & 0b11 == 0);
        if reservoir.len() > PLACES || !are_keys {
            return Err(SnapshotError::Damaged);
        }
        Ok((swapped, reservoir))
    }
}

fn tagged(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) -> Outcome<()> {
    out.bytes(&[tag])?;
    out.text(bytes)
}

fn owned(body: &mut &[u8]) -> Outcome<Owned> {
    let [tag] = body.array()?;
    let bytes = body.text(LONGEST)?;
    let word = || bytes[..].try_into().map_err(|_| SnapshotError::Damaged);
    let is_text = || std::str::from_utf8(&bytes).is_ok();
    Ok(match tag {
        0 => Owned::Integer(i64::from_le_bytes(word()?)),
        1 => Owned::Unsigned(u64::from_le_bytes(word()?)),
        2 => Owned::Float(f64::from_le_bytes(word()?)),
        3 => Owned::Bool(match bytes[..] {
            [0] => false,
            [1] => true,
            _ => return Err(SnapshotError::Damaged),
        }),
        4 if is_text() => Owned::Text(bytes.into()),
        5 => Owned::Bytes(bytes.into()),
        6 if is_text() => Owned::Digits(bytes.into()),
        _ => return Err(SnapshotError::Damaged),
    })
}
