//! Whether an object holds a key twice.
//!
//! One list serves all objects that are open: an inner one's keys lie behind those of the outer.

use std::hash::{BuildHasher, RandomState};

use super::super::Problem;
use super::escape::unescape_json;
use super::value::{Failure, byte};

/// From so many keys on, comparing each with each would cost more than hashing them. The hash is
/// keyed, so that nobody can write an object whose keys all collide.
const MANY: usize = 16;

/// Where the text of a key lies.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Line,
    Decoded,
    Layout,
}

#[derive(Clone, Copy)]
struct Key {
    /// Its first eight bytes, or fewer: mostly tells keys apart without looking further.
    tag: u64,
    start: u32,
    len: u32,
    place: Place,
    /// Where it was met in the line, for the message.
    at: u32,
}

#[derive(Default)]
pub(super) struct Keys {
    list: Vec<Key>,
    /// Keys that came with escapes, without them.
    decoded: Vec<u8>,
    hashes: Vec<(u64, u32)>,
    hasher: RandomState,
}

impl Keys {
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.decoded.clear();
    }

    /// Begins an object.
    #[inline(always)]
    pub(super) fn begin(&self) -> usize {
        self.list.len()
    }

    /// Adds a key that stands in the line, quotes included, from `start` to `end`.
    pub(super) fn push(&mut self, line: &[u8], start: usize, end: usize, escaped: bool) {
        let inside = line.get(start + 1..end - 1).unwrap_or_default();
        let (place, from, len) = if escaped {
            let from = self.decoded.len();
            unescape_json(inside, &mut self.decoded);
            (Place::Decoded, from, self.decoded.len() - from)
        } else {
            (Place::Line, start + 1, inside.len())
        };
        let text = if escaped { &self.decoded[from..] } else { inside };
        let (start, at) = (from as u32, start as u32);
        self.list.push(Key { tag: tag(text), start, len: len as u32, place, at });
    }

    /// Adds a key that was learned from a line before, and that the layout vouches for.
    pub(super) fn push_learned(&mut self, layout: &[u8], start: usize, len: usize) {
        let tag = tag(layout.get(start..start + len).unwrap_or_default());
        let (start, len) = (start as u32, len as u32);
        self.list.push(Key { tag, start, len, place: Place::Layout, at: 0 });
    }

    /// The last key added, decoded.
    pub(super) fn last<'a>(&'a self, line: &'a [u8]) -> &'a [u8] {
        self.list.last().map(|key| self.text(key, line, &[])).unwrap_or_default()
    }

    fn text<'a>(&'a self, key: &Key, line: &'a [u8], layout: &'a [u8]) -> &'a [u8] {
        let from = match key.place {
            Place::Line => line,
            Place::Decoded => &self.decoded,
            Place::Layout => layout,
        };
        from.get(key.start as usize..(key.start + key.len) as usize).unwrap_or_default()
    }

    /// Ends the object whose keys begin at `first`: fails at a key that was there before.
    #[inline(always)]
    pub(super) fn end(&mut self, first: usize, line: &[u8], layout: &[u8]) -> Result<(), Failure> {
        if self.list.len() - first > 1 {
            let twice = if self.list.len() - first < MANY {
                self.compare(first, line, layout)
            } else {
                self.hash(first, line, layout)
            };
            if let Some(at) = twice {
                return Err((Problem::DuplicateKey, at as usize));
            }
        }
        self.list.truncate(first);
        Ok(())
    }

    fn same(&self, a: &Key, b: &Key, line: &[u8], layout: &[u8]) -> bool {
        a.tag == b.tag
            && a.len == b.len
            && (a.len <= 8 || self.text(a, line, layout) == self.text(b, line, layout))
    }

    fn compare(&self, first: usize, line: &[u8], layout: &[u8]) -> Option<u32> {
        let keys = &self.list[first..];
        for (place, key) in keys.iter().enumerate() {
            if keys[..place].iter().any(|earlier| self.same(earlier, key, line, layout)) {
                return Some(key.at);
            }
        }
        None
    }

    /// Keys with equal hashes come to stand side by side.
    fn hash(&mut self, first: usize, line: &[u8], layout: &[u8]) -> Option<u32> {
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.clear();
        hashes.extend(
            self.list[first..]
                .iter()
                .zip(first as u32..)
                .map(|(key, place)| (self.hasher.hash_one(self.text(key, line, layout)), place)),
        );
        hashes.sort_unstable();
        let mut twice: Option<u32> = None;
        for run in hashes.chunk_by(|a, b| a.0 == b.0) {
            for (i, (_, later)) in run.iter().enumerate() {
                let key = &self.list[*later as usize];
                let earlier = |(_, place): &(u64, u32)| {
                    self.same(&self.list[*place as usize], key, line, layout)
                };
                // All of a long run are the same key (nobody can aim at a keyed hash), so the look
                // back ends at once.
                if run[..i].iter().any(earlier) {
                    twice = Some(twice.map_or(key.at, |at| at.min(key.at)));
                }
            }
        }
        self.hashes = hashes;
        twice
    }
}

fn tag(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(head) => u64::from_le_bytes(*head),
        None => (0..text.len()).rev().fold(0, |tag, at| tag << 8 | u64::from(byte(text, at))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes the keys as one line and asks; `escape` says which of them come escaped.
    fn twice(names: &[String], escape: impl Fn(usize) -> bool) -> Option<usize> {
        let mut keys = Keys::default();
        let (mut line, mut places) = (String::new(), Vec::new());
        for (i, name) in names.iter().enumerate() {
            let start = line.len();
            line.push('"');
            if escape(i) {
                name.encode_utf16().for_each(|unit| line.push_str(&format!("\\u{unit:04x}")));
            } else {
                line.push_str(name);
            }
            line.push('"');
            places.push((start, line.len(), escape(i) && !name.is_empty()));
        }
        for (start, end, escaped) in places {
            keys.push(line.as_bytes(), start, end, escaped);
        }
        let outcome = keys.end(0, line.as_bytes(), &[]);
        outcome.err().map(|(problem, at)| {
            assert_eq!(problem, Problem::DuplicateKey);
            at
        })
    }

    proptest! {
        #[test]
        fn a_key_is_found_twice_where_it_is_there_twice(
            names in prop::collection::vec("[ab]{0,2}|[a-z]{7,10}|é{4,5}", 0..40),
            escape: u64,
        ) {
            let distinct: std::collections::HashSet<_> = names.iter().collect();
            let found = twice(&names, |i| escape >> (i % 64) & 1 == 1);
            prop_assert_eq!(found.is_some(), distinct.len() < names.len());
        }

        #[test]
        fn comparing_and_hashing_are_equal(
            names in prop::collection::vec("[a-d]{0,2}|longer than eight [a-f]{2}", 0..12),
        ) {
            // Others put before them make so many that they are hashed.
            let others = (0..MANY).map(|i| format!("other {i}"));
            let more: Vec<String> = others.chain(names.iter().cloned()).collect();
            let before: usize = more[..MANY].iter().map(|name| name.len() + 2).sum();
            let few = twice(&names, |_| false);
            prop_assert_eq!(twice(&more, |_| false), few.map(|at| at + before));
        }
    }
}
