//! How what is kept becomes bytes and comes back: little-endian numbers, texts led by their length.
//!
//! No length is believed: memory grows with the bytes that have come.

use crate::error::SnapshotError;

pub(crate) type Outcome<T> = Result<T, SnapshotError>;

/// Bytes that are made room for at once.
const STRIDE: usize = 64 * 1024;

pub(crate) fn io(step: &'static str) -> impl FnOnce(std::io::Error) -> SnapshotError {
    move |source| SnapshotError::Io { step, source }
}

/// Where bytes go.
pub(crate) trait Out {
    fn bytes(&mut self, bytes: &[u8]) -> Outcome<()>;

    fn number(&mut self, number: u64) -> Outcome<()> {
        self.bytes(&number.to_le_bytes())
    }

    /// All numbers but the largest, or none.
    fn optional(&mut self, number: Option<u64>) -> Outcome<()> {
        self.number(number.unwrap_or(u64::MAX))
    }

    /// Any number, or none.
    fn maybe(&mut self, number: Option<i64>) -> Outcome<()> {
        self.number(u64::from(number.is_some()))?;
        self.number(number.unwrap_or_default() as u64)
    }

    fn text(&mut self, text: &[u8]) -> Outcome<()> {
        self.number(text.len() as u64)?;
        self.bytes(text)
    }
}

impl Out for Vec<u8> {
    fn bytes(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// Where bytes come from.
pub(crate) trait Body {
    fn fill(&mut self, out: &mut [u8]) -> Outcome<()>;

    /// Fails unless everything has been read.
    fn end(&mut self) -> Outcome<()>;

    fn array<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        let mut out = [0; N];
        self.fill(&mut out)?;
        Ok(out)
    }

    fn number(&mut self) -> Outcome<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn size(&mut self) -> Outcome<usize> {
        usize::try_from(self.number()?).map_err(|_| SnapshotError::Damaged)
    }

    /// A length of time: not negative.
    fn span(&mut self) -> Outcome<i64> {
        i64::try_from(self.number()?).map_err(|_| SnapshotError::Damaged)
    }

    fn optional(&mut self) -> Outcome<Option<u64>> {
        Ok(Some(self.number()?).filter(|number| *number != u64::MAX))
    }

    fn maybe(&mut self) -> Outcome<Option<i64>> {
        let is_there = self.truth()?;
        let number = self.number()? as i64;
        Ok(is_there.then_some(number))
    }

    fn truth(&mut self) -> Outcome<bool> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(SnapshotError::Damaged),
        }
    }

    fn text(&mut self, most: usize) -> Outcome<Vec<u8>> {
        let length = self.size()?;
        if length > most {
            return Err(SnapshotError::Damaged);
        }
        let mut text = Vec::new();
        while text.len() < length {
            let before = text.len();
            text.resize(length.min(before + STRIDE), 0);
            self.fill(&mut text[before..])?;
        }
        Ok(text)
    }

    /// Things one behind the other, led by their number.
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Outcome<T>) -> Outcome<Vec<T>> {
        let mut list = Vec::new();
        for _ in 0..self.number()? {
            list.push(one(self)?);
        }
        Ok(list)
    }
}

impl Body for &[u8] {
    fn fill(&mut self, out: &mut [u8]) -> Outcome<()> {
        let (head, tail) = self.split_at_checked(out.len()).ok_or(SnapshotError::Damaged)?;
        out.copy_from_slice(head);
        *self = tail;
        Ok(())
    }

    fn end(&mut self) -> Outcome<()> {
        if self.is_empty() { Ok(()) } else { Err(SnapshotError::Damaged) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let mut out = Vec::new();
        out.number(7).unwrap();
        out.optional(None).unwrap();
        out.maybe(Some(-1)).unwrap();
        out.maybe(None).unwrap();
        out.text("größer".as_bytes()).unwrap();
        let mut body = &out[..];
        assert_eq!((body.number().unwrap(), body.optional().unwrap()), (7, None));
        assert_eq!((body.maybe().unwrap(), body.maybe().unwrap()), (Some(-1), None));
        assert_eq!(body.text(100).unwrap(), "größer".as_bytes());
        body.end().unwrap();
    }

    #[test]
    fn a_length_that_is_not_there_takes_no_memory() {
        let mut out = Vec::new();
        out.number(1 << 40).unwrap();
        out.bytes(&[0; 100]).unwrap();
        assert!((&out[..]).text(usize::MAX).is_err());
        assert!((&out[..]).list(|body| body.array::<1>()).is_err());
        assert!((&out[..]).text(1 << 30).is_err());
    }
}
