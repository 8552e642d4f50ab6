//! Lists of names: which values of an attribute count at all, before any gate is asked.
//!
//! A name stands for itself and for all below it: `example.org` for `www.example.org` too. Memory is
//! that of the names; nothing is kept of what is looked up.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// A list may hold this many bytes of names at most.
pub const MOST_BYTES: usize = 256 << 20;

/// Why a list cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The line is counted from 1.
    #[error("line {line}: expected a name, or a rank, a comma and a name")]
    Line { line: usize },
    #[error("holds no name")]
    Empty,
    #[error("is larger than {} MiB", MOST_BYTES >> 20)]
    TooLarge,
}

/// Names, one behind the other, and a table of where each begins.
#[derive(Clone, Debug)]
pub struct NameList {
    /// In lower case, each behind its length.
    names: Vec<u8>,
    /// Open addressing: the place of a name in `names`, plus one; 0 is free.
    table: Vec<u32>,
    hasher: RandomState,
    count: usize,
}

/// Longer ones are no names of hosts, nor of anything else that lists are made of.
const LONGEST: usize = u16::MAX as usize;

impl NameList {
    /// Reads a list: one name a line, or a rank, a comma and a name, as lists of top sites have it.
    /// Empty lines, and those that begin with `#`, are passed over; so is a first line that names
    /// the columns. `*.` or a dot before a name, and a dot behind it, are left out.
    pub fn read(text: &[u8]) -> Result<Self, ListError> {
        if text.len() > MOST_BYTES {
            return Err(ListError::TooLarge);
        }
        let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        let lines = memchr::memchr_iter(b'\n', text).count() + 1;
        let mut list = Self {
            names: Vec::with_capacity(text.len() + lines),
            table: vec![0; (lines * 2).next_power_of_two()],
            hasher: RandomState::new(),
            count: 0,
        };
        let mut lowered = Vec::new();
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line[0] == b'#' {
                continue;
            }
            let name = match memchr::memchr(b',', line) {
                None => line,
                Some(comma) if line[..comma].iter().all(u8::is_ascii_digit) => &line[comma + 1..],
                Some(_) if number == 0 => continue,
                Some(_) => return Err(ListError::Line { line: number + 1 }),
            };
            let name = name.strip_prefix(b"*.").or(name.strip_prefix(b".")).unwrap_or(name);
            let name = name.strip_suffix(b".").unwrap_or(name);
            let is_name = !name.is_empty()
                && name.len() <= LONGEST
                && !name.iter().any(|byte| matches!(byte, b' ' | b'\t' | b',' | b'"' | 0));
            if !is_name {
                return Err(ListError::Line { line: number + 1 });
            }
            lowered.clear();
            lowered.extend(name.iter().map(u8::to_ascii_lowercase));
            list.insert(&lowered);
        }
        if list.count == 0 { Err(ListError::Empty) } else { Ok(list) }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.names.capacity() + self.table.capacity() * size_of::<u32>()
    }

    /// Whether a value is one of the names or below one, in any case of letters. The dot at its end
    /// and a port behind it do not matter.
    pub fn holds(&self, value: &[u8]) -> bool {
        let mut name = value.strip_suffix(b".").unwrap_or(value);
        if let Some(colon) = memchr::memchr(b':', name)
            && name[colon + 1..].iter().all(u8::is_ascii_digit)
        {
            name = &name[..colon];
        }
        let mut short = [0; 256];
        let long;
        let lowered = match short.get_mut(..name.len()) {
            Some(lowered) => {
                lowered.copy_from_slice(name);
                lowered.make_ascii_lowercase();
                &*lowered
            }
            None if name.len() > LONGEST => return false,
            None => {
                long = name.to_ascii_lowercase();
                &long[..]
            }
        };
        let mut rest = lowered;
        loop {
            if self.place(rest).is_ok() {
                return true;
            }
            match memchr::memchr(b'.', rest) {
                Some(dot) => rest = &rest[dot + 1..],
                None => return false,
            }
        }
    }

    fn insert(&mut self, name: &[u8]) {
        if let Err(slot) = self.place(name) {
            // A list is smaller than 4 GiB, lengths included.
            self.table[slot] = self.names.len() as u32 + 1;
            self.names.extend_from_slice(&(name.len() as u16).to_le_bytes());
            self.names.extend_from_slice(name);
            self.count += 1;
        }
    }

    /// The slot of a name; as an error, the one that it would be put into. One is always free.
    fn place(&self, name: &[u8]) -> Result<usize, usize> {
        let mask = self.table.len() - 1;
        let mut slot = self.hasher.hash_one(name) as usize & mask;
        loop {
            match (self.table[slot] as usize).checked_sub(1) {
                None => return Err(slot),
                Some(at) if self.at(at) == name => return Ok(slot),
                Some(_) => slot = (slot + 1) & mask,
            }
        }
    }

    fn at(&self, at: usize) -> &[u8] {
        let Some((len, rest)) = self.names[at..].split_first_chunk() else { return &[] };
        &rest[..u16::from_le_bytes(*len) as usize]
    }
}

/// What an attribute's values must be, or must not be, to count.
#[derive(Clone, Debug, Default)]
pub struct NameFilter {
    pub only: Option<Arc<NameList>>,
    pub except: Option<Arc<NameList>>,
}

impl NameFilter {
    /// Whether a value counts. One that is no text is in no list.
    pub fn passes(&self, value: Option<&[u8]>) -> bool {
        let is_in = |list: &Arc<NameList>| value.is_some_and(|value| list.holds(value));
        self.only.as_ref().is_none_or(is_in) && !self.except.as_ref().is_some_and(is_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn list(text: &str) -> NameList {
        NameList::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_name_stands_for_all_below_it() {
        let list = list("# top\n\nExample.ORG\r\n*.example.com\n.example.net.\n");
        assert_eq!(list.len(), 3);
        for value in ["example.org", "WWW.example.org.", "a.b.example.com", "example.net:8080"] {
            assert!(list.holds(value.as_bytes()), "{value}");
        }
        for value in ["org", "notexample.org", "example.org.evil", "", ".", "example.org:x", "::1"]
        {
            assert!(!list.holds(value.as_bytes()), "{value}");
        }
        let long = format!("{}.example.org", "a.".repeat(1000));
        assert!(list.holds(long.as_bytes()));
        assert!(!list.holds(&vec![b'a'; LONGEST + 1]));
    }

    #[test]
    fn a_rank_may_come_first() {
        let list = list("rank,domain\n1,example.org\n2,example.com\n");
        assert!(list.holds(b"example.org") && list.holds(b"example.com") && !list.holds(b"domain"));
        let read = |text: &str| NameList::read(text.as_bytes()).map(|list| list.len());
        assert_eq!(read("a\nb,c\n"), Err(ListError::Line { line: 2 }));
        assert_eq!(read("a\n1,b,c\n"), Err(ListError::Line { line: 2 }));
        assert_eq!(read("0.0.0.0 a.example\n"), Err(ListError::Line { line: 1 }));
        assert_eq!(read("1,\n"), Err(ListError::Line { line: 1 }));
        assert_eq!(read("# nothing\n"), Err(ListError::Empty));
    }

    #[test]
    fn both_lists_decide() {
        let filter = NameFilter {
            only: Some(Arc::new(list("example.org\nexample.com"))),
            except: Some(Arc::new(list("ads.example.org"))),
        };
        assert!(filter.passes(Some(b"www.example.org")));
        assert!(!filter.passes(Some(b"x.ads.example.org")));
        assert!(!filter.passes(Some(b"example.net")));
        assert!(!filter.passes(None));
        assert!(NameFilter::default().passes(None));
        assert!(NameFilter { only: None, ..filter }.passes(None));
    }

    proptest! {
        #[test]
        fn it_holds_what_a_set_of_names_holds(
            names in prop::collection::vec("[ab]{1,2}(\\.[ab]{1,2}){0,2}", 1..30),
            values in prop::collection::vec("[ab]{1,2}(\\.[ab]{1,2}){0,4}", 0..50),
        ) {
            let list = NameList::read(names.join("\n").as_bytes()).unwrap();
            let set: HashSet<&str> = names.iter().map(String::as_str).collect();
            prop_assert_eq!(list.len(), set.len());
            for value in &values {
                let below = value.match_indices('.').map(|(dot, _)| &value[dot + 1..]);
                let expected = std::iter::once(&value[..]).chain(below).any(|n| set.contains(n));
                prop_assert_eq!(list.holds(value.as_bytes()), expected);
            }
        }
    }
}
