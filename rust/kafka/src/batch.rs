//! Messages as they came, in memory of our own.

use std::ffi::CString;
use std::ops::Range;
use std::time::Instant;

/// What stands for no value, where lengths are.
const NOTHING: u32 = u32::MAX;

/// Messages in the order in which they came, and what was told of partitions between them.
pub struct Batch {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    headers: Vec<Header>,
    /// Partitions that were read to their end, and where that is.
    pub ends: Vec<(i32, i64)>,
    /// What is wrong with partitions: by Kafka's numbers, and in words.
    pub errors: Vec<(i32, String)>,
    /// When the first of them was there.
    pub arrived: Instant,
}

struct Row {
    partition: i32,
    offset: i64,
    timestamp_ms: i64,
    /// Where the value begins; the key is behind it.
    start: usize,
    value: u32,
    key: u32,
    headers: Range<u32>,
}

pub struct Header {
    pub name: CString,
    pub value: Option<Vec<u8>>,
}

/// One message; what it has beside is asked for by its number.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    pub partition: i32,
    pub offset: i64,
    pub timestamp_ms: i64,
    pub value: Option<&'a [u8]>,
    pub key: Option<&'a [u8]>,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            rows: Vec::new(),
            headers: Vec::new(),
            ends: Vec::new(),
            errors: Vec::new(),
            arrived: Instant::now(),
        }
    }
}

impl Batch {
    /// Without messages; with what was told of partitions.
    pub fn told(ends: Vec<(i32, i64)>, errors: Vec<(i32, String)>) -> Self {
        Self { ends, errors, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Makes room for so many messages, about as long as one of them.
    pub(crate) fn expect(&mut self, count: usize, length: usize) {
        self.rows.reserve(count);
        self.bytes.reserve(count.saturating_mul(length.min(1 << 10)));
    }

    /// Adds a message.
    pub fn push(&mut self, message: Message<'_>, headers: impl IntoIterator<Item = Header>) {
        let start = self.bytes.len();
        let first = self.headers.len() as u32;
        self.headers.extend(headers);
        let mut taken = |text: Option<&[u8]>| {
            let text = text.filter(|text| text.len() < NOTHING as usize);
            text.map_or(NOTHING, |text| {
                self.bytes.extend_from_slice(text);
                text.len() as u32
            })
        };
        self.rows.push(Row {
            partition: message.partition,
            offset: message.offset,
            timestamp_ms: message.timestamp_ms,
            start,
            value: taken(message.value),
            key: taken(message.key),
            headers: first..self.headers.len() as u32,
        });
    }

    /// A message by its number.
    pub fn get(&self, number: usize) -> Option<Message<'_>> {
        let row = self.rows.get(number)?;
        let behind = row.start + if row.value == NOTHING { 0 } else { row.value as usize };
        let text = |start: usize, len: u32| {
            (len != NOTHING).then(|| &self.bytes[start..start + len as usize])
        };
        Some(Message {
            partition: row.partition,
            offset: row.offset,
            timestamp_ms: row.timestamp_ms,
            value: text(row.start, row.value),
            key: text(behind, row.key),
        })
    }

    /// The headers of a message, where they were asked for.
    pub fn headers(&self, number: usize) -> &[Header] {
        let headers = self.rows.get(number).map(|row| row.headers.clone()).unwrap_or_default();
        &self.headers[headers.start as usize..headers.end as usize]
    }

    /// Messages of one partition that lie one behind the other: which, from where, to where.
    pub fn runs(&self) -> Vec<(i32, usize, usize)> {
        let mut runs: Vec<(i32, usize, usize)> = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            match runs.last_mut() {
                Some((partition, _, end)) if *partition == row.partition => *end = number + 1,
                _ => runs.push((row.partition, number, number + 1)),
            }
        }
        runs
    }

    /// The first message of a run that is at an offset or behind it; the end of the run if none is.
    pub fn first_at(&self, run: Range<usize>, offset: i64) -> usize {
        let start = run.start;
        let rows = self.rows.get(run).unwrap_or_default();
        start + rows.partition_point(|row| row.offset < offset)
    }

    /// About so many of the messages, from all over.
    pub fn some(&self, most: usize) -> Self {
        let mut some = Self::default();
        let step = (self.len() / most.max(1)).max(1);
        for number in (0..self.len()).step_by(step).take(most) {
            if let Some(message) = self.get(number) {
                some.push(message, None);
            }
        }
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<'a>(partition: i32, offset: i64, value: Option<&'a [u8]>) -> Message<'a> {
        Message { partition, offset, timestamp_ms: 7, value, key: value.map(|_| &b"k"[..]) }
    }

    #[test]
    fn what_was_put_in_comes_out() {
        let mut batch = Batch::default();
        let header = Header { name: c"n".into(), value: None };
        batch.push(message(0, 5, Some(b"abc")), [header]);
        batch.push(message(0, 6, None), None);
        batch.push(message(1, 2, Some(b"")), None);
        let found: Vec<_> = (0..4).map(|number| batch.get(number).map(|one| one.value)).collect();
        assert_eq!(found, [Some(Some(&b"abc"[..])), Some(None), Some(Some(&b""[..])), None]);
        let keys: Vec<_> =
            (0..3).filter_map(|number| batch.get(number)).map(|one| one.key).collect();
        assert_eq!(keys, [Some(&b"k"[..]), None, Some(&b"k"[..])]);
        assert_eq!(
            (batch.headers(0).len(), batch.headers(1).len(), batch.headers(9).len()),
            (1, 0, 0)
        );
        assert_eq!(batch.runs(), [(0, 0, 2), (1, 2, 3)]);
    }

    #[test]
    fn places_in_a_run_are_found_by_offsets() {
        let mut batch = Batch::default();
        for offset in [2, 4, 5, 9] {
            batch.push(message(0, offset, None), None);
        }
        let found: Vec<_> = [0, 2, 3, 4, 6, 10].map(|at| batch.first_at(0..4, at)).into();
        assert_eq!(found, [0, 0, 1, 1, 3, 4]);
        assert_eq!(batch.first_at(2..4, 0), 2);
        assert_eq!((batch.some(2).len(), batch.some(100).len(), batch.some(3).len()), (2, 4, 3));
    }
}
