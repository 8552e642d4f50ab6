//! Records that were scanned, waiting to be decided and written.

use super::cell::{Cell, Kind};
use super::pen::put_from;
use crate::column::{Column, Value};

/// A value as the gate takes it: a place in the text, or the value itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Spot {
    #[default]
    Missing,
    Text(u32, u32),
    /// Text that had to be decoded; it lies in the decoded bytes.
    Decoded(u32, u32),
    Integer(i64),
    Unsigned(u64),
    Digits(u32, u32),
    Float(f64),
    Bool(bool),
}

/// Some records of one block of text.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) times: Vec<i64>,
    pub(crate) users: Vec<Spot>,
    /// For each attribute, the value of each record.
    pub(crate) attributes: Vec<Vec<Spot>>,
    /// Where each record begins in the block.
    pub(crate) starts: Vec<u32>,
    /// The fields of each record, one record behind the other, counted from its beginning.
    pub(crate) cells: Vec<Cell>,
    /// Other members that leave: key and value; and for each record where its own end.
    pub(crate) rest: Vec<(Cell, Cell)>,
    pub(crate) rest_ends: Vec<u32>,
    pub(crate) decoded: Vec<u8>,
    /// Scratch for a value that is decoded and needed no longer.
    pub(crate) scratch: Vec<u8>,
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    pub(crate) fn clear(&mut self, attributes: usize) {
        self.times.clear();
        self.users.clear();
        self.attributes.resize_with(attributes, Vec::new);
        self.attributes.iter_mut().for_each(Vec::clear);
        self.starts.clear();
        self.cells.clear();
        self.rest.clear();
        self.rest_ends.clear();
        self.decoded.clear();
    }

    /// The fields of one record.
    pub(crate) fn cells_of(&self, row: usize, fields: usize) -> &[Cell] {
        &self.cells[row * fields..(row + 1) * fields]
    }

    /// What else of one record leaves.
    pub(crate) fn rest_of(&self, row: usize) -> &[(Cell, Cell)] {
        let Some(end) = self.rest_ends.get(row) else { return &[] };
        let start = if row == 0 { 0 } else { self.rest_ends[row - 1] };
        &self.rest[start as usize..*end as usize]
    }

    /// Appends the text of a cell.
    #[inline(always)]
    pub(crate) fn put(out: &mut Vec<u8>, block: &[u8], start: u32, cell: &Cell) {
        let start = start as usize;
        let (from, to) =
            (start.wrapping_add(cell.start as usize), start.wrapping_add(cell.end as usize));
        put_from(out, block, from, to);
    }

    /// The text of a cell of a record that begins at `start`.
    #[inline(always)]
    pub(crate) fn raw<'b>(block: &'b [u8], start: u32, cell: &Cell) -> &'b [u8] {
        let start = start as usize;
        &block[start + cell.start as usize..start + cell.end as usize]
    }
}

/// The value at a spot.
#[inline(always)]
pub(crate) fn value<'a>(spot: Spot, block: &'a [u8], decoded: &'a [u8]) -> Option<Value<'a>> {
    Some(match spot {
        Spot::Missing => return None,
        Spot::Text(start, end) => Value::Text(&block[start as usize..end as usize]),
        Spot::Decoded(start, end) => Value::Text(&decoded[start as usize..end as usize]),
        Spot::Integer(number) => Value::Integer(number),
        Spot::Unsigned(number) => Value::Unsigned(number),
        Spot::Digits(start, end) => Value::Digits(&block[start as usize..end as usize]),
        Spot::Float(number) => Value::Float(number),
        Spot::Bool(truth) => Value::Bool(truth),
    })
}

/// One field of several parts of a block, one part behind the other, as the gate takes it.
pub(crate) struct Field<'a> {
    pub(crate) block: &'a [u8],
    /// Of each part: the number of its first row, its spots, what was decoded for it.
    pub(crate) parts: Vec<(usize, &'a [Spot], &'a [u8])>,
    pub(crate) rows: usize,
    pub(crate) may_miss: bool,
}

impl Column for Field<'_> {
    fn len(&self) -> usize {
        self.rows
    }

    #[inline(always)]
    fn value(&self, row: usize) -> Option<Value<'_>> {
        let mut part = self.parts.len() - 1;
        while part > 0 && self.parts[part].0 > row {
            part -= 1;
        }
        let (first, spots, decoded) = self.parts[part];
        value(*spots.get(row - first)?, self.block, decoded)
    }

    fn may_miss(&self) -> bool {
        self.may_miss
    }
}

impl Spot {
    /// Whether it may be that there is no value, or none that could be a user's.
    pub(crate) fn may_miss(&self) -> bool {
        matches!(self, Self::Missing | Self::Float(_) | Self::Bool(_))
    }
}

/// A number's text as a value: the same as Python's `json` reads it.
pub(crate) fn number(kind: Kind, text: &[u8], start: u32) -> Spot {
    // The scanner has checked that it is ASCII.
    let Ok(spelled) = std::str::from_utf8(text) else { return Spot::Missing };
    if kind == Kind::Number {
        return spelled.parse().map_or(Spot::Missing, Spot::Float);
    }
    if let Ok(number) = spelled.parse() {
        Spot::Integer(number)
    } else if let Ok(number) = spelled.parse() {
        Spot::Unsigned(number)
    } else {
        Spot::Digits(start, start + text.len() as u32)
    }
}
