//! Where a field's value lies in its record.

/// What a value is, as far as its first look tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kind {
    #[default]
    Absent,
    Null,
    Text,
    /// Text that must be decoded before use: JSON escapes, or doubled quotes in CSV.
    EscapedText,
    /// `-?(0|[1-9][0-9]*)`.
    Integer,
    /// Any other JSON number.
    Number,
    True,
    False,
    Object,
    Array,
}

/// A field's value in a record: where it lies.
///
/// JSON: the raw value, with the quotes of a string. CSV: the raw field without the quotes around
/// it, Text, or EscapedText if it holds doubled quotes; an empty field, quoted or not, is Null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    pub start: u32,
    pub end: u32,
    pub kind: Kind,
    /// CSV: was in quotes.
    pub quoted: bool,
}

impl Cell {
    /// The caller has seen to it that the record is no longer than a `u32` can say.
    #[inline(always)]
    pub(super) fn new(start: usize, end: usize, kind: Kind) -> Self {
        Self { start: start as u32, end: end as u32, kind, quoted: false }
    }

    /// The raw bytes of the value in the record they were found in; none if it is another one.
    #[inline(always)]
    pub fn of<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        record.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}
