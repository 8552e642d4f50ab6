//! Records that were scanned, waiting to be decided and written.

use super::cell::{Cell, Kind};
use super::pen::put_from;
use super::plan::Plan;
use super::problem::Problem;
use crate::column::{Column, Value};
use crate::ladder::Place;
use crate::swap::Owned;
use std::io::Write;

/// A value as the gate takes it: a place in the text, or the value itself.
///
/// Plain words, not an enum with values inside: that is put together and taken apart byte by byte,
/// which took a tenth of the time of a line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Spot {
    kind: SpotKind,
    len: u32,
    /// A number's bits, or where the text begins.
    bits: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum SpotKind {
    #[default]
    Missing,
    Text,
    /// Text that had to be decoded; it lies in the decoded bytes.
    Decoded,
    Integer,
    Unsigned,
    /// An integer past 64 bits.
    Digits,
    Float,
    Bool,
    /// No value that anything could be decided about.
    Unfit,
    /// What leaves instead of the value that was decided about, spelled among the decoded bytes: a
    /// text, or a number or truth value.
    SwappedText,
    SwappedWord,
    /// A value that a list left out: it does not count, and never leaves.
    Filtered,
}

impl Spot {
    #[inline(always)]
    pub(crate) fn text(kind: SpotKind, start: usize, end: usize) -> Self {
        Self { kind, len: end.wrapping_sub(start) as u32, bits: start as u64 }
    }

    #[inline(always)]
    pub(crate) fn word(kind: SpotKind, bits: u64) -> Self {
        Self { kind, len: 0, bits }
    }

    /// Whether there is a value to decide about.
    pub(crate) fn is_value(self) -> bool {
        !matches!(self.kind, SpotKind::Missing | SpotKind::Unfit | SpotKind::Filtered)
    }

    pub(crate) fn filtered() -> Self {
        Self::word(SpotKind::Filtered, 0)
    }

    #[inline(always)]
    pub(crate) fn kind(self) -> SpotKind {
        self.kind
    }

    pub(crate) fn float(self) -> f64 {
        f64::from_bits(self.bits)
    }

    pub(crate) fn is_zero(self) -> bool {
        self.kind == SpotKind::Integer && self.bits == 0
    }

    #[inline(always)]
    pub(crate) fn of<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let start = self.bits as usize;
        &bytes[start..start + self.len as usize]
    }

    #[inline(always)]
    pub(crate) fn is_swapped(self) -> bool {
        matches!(self.kind, SpotKind::SwappedText | SpotKind::SwappedWord)
    }

    /// Whether JSON can spell the value in several ways.
    #[inline(always)]
    pub(crate) fn has_spellings(self) -> bool {
        matches!(self.kind, SpotKind::Decoded | SpotKind::Float) || self.is_zero()
    }

    /// Whether it may be that there is no value, or none that could be a user's.
    pub(crate) fn may_miss(&self) -> bool {
        matches!(
            self.kind,
            SpotKind::Missing | SpotKind::Filtered | SpotKind::Float | SpotKind::Bool
        )
    }
}

/// Some records of one block of text.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) times: Vec<i64>,
    pub(crate) users: Vec<Spot>,
    /// For each attribute, the value of each record.
    pub(crate) attributes: Vec<Vec<Spot>>,
    /// Coarser labels of the attributes that have any, finest first; all of one behind the other.
    pub(crate) coarser: Vec<Vec<Spot>>,
    /// The id of each record, where they have any.
    pub(crate) ids: Vec<Spot>,
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
    /// Scratch for where lines end.
    pub(crate) ends: Vec<u32>,
    /// Scratch for where the labels of a value are.
    pub(crate) places: Vec<Place>,
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    pub(crate) fn clear(&mut self, attributes: usize, coarser: usize) {
        self.times.clear();
        self.users.clear();
        self.attributes.resize_with(attributes, Vec::new);
        self.coarser.resize_with(coarser, Vec::new);
        self.attributes.iter_mut().chain(&mut self.coarser).for_each(Vec::clear);
        self.ids.clear();
        self.starts.clear();
        self.cells.clear();
        self.rest.clear();
        self.rest_ends.clear();
        self.decoded.clear();
    }

    /// Takes back what was added for a record that turns out to be bad, and says why: no value can be
    /// made of a cell.
    pub(crate) fn take_back(&mut self, cell: &Cell) -> (Problem, usize) {
        let rows = self.times.len();
        let columns = self.attributes.iter_mut().chain(&mut self.coarser);
        columns.for_each(|column| column.truncate(rows));
        (Problem::WrongType, cell.start as usize)
    }

    /// Takes out the records for which `kept` is false, one for each.
    pub(crate) fn keep(&mut self, kept: &[bool]) {
        let rows = self.times.len().max(1);
        let width = self.cells.len() / rows;
        if !self.rest_ends.is_empty() {
            let mut start = 0;
            let mut rest = Vec::with_capacity(self.rest.len());
            let mut ends = Vec::with_capacity(self.rest_ends.len());
            for (end, kept) in self.rest_ends.iter().map(|end| *end as usize).zip(kept) {
                if *kept {
                    rest.extend_from_slice(&self.rest[start..end]);
                    ends.push(rest.len() as u32);
                }
                start = end;
            }
            (self.rest, self.rest_ends) = (rest, ends);
        }
        retain(&mut self.cells, width, kept);
        retain(&mut self.times, 1, kept);
        retain(&mut self.users, 1, kept);
        retain(&mut self.ids, 1, kept);
        retain(&mut self.starts, 1, kept);
        let columns = self.attributes.iter_mut().chain(&mut self.coarser);
        columns.for_each(|column| retain(column, 1, kept));
    }

    /// Lets another value leave instead of an attribute's of one record.
    pub(crate) fn swap(&mut self, attribute: usize, row: usize, value: &Owned) {
        let start = self.decoded.len();
        value.spell(&mut self.decoded);
        let kind = if value.is_text() { SpotKind::SwappedText } else { SpotKind::SwappedWord };
        self.attributes[attribute][row] = Spot::text(kind, start, self.decoded.len());
    }

    /// The values of an attribute at their coarsest level, one for each record.
    pub(crate) fn coarsest(&self, plan: &Plan, attribute: usize) -> &[Spot] {
        let mut above = plan.coarser_of_each().take(attribute + 1);
        let own = above.by_ref().last().flatten().unwrap_or(0);
        if own == 0 {
            return &self.attributes[attribute];
        }
        let before: usize = plan.coarser_of_each().take(attribute).flatten().sum();
        &self.coarser[before + own - 1]
    }

    /// Writes a value as plain text, the same for all spellings of it; false where there is none.
    pub(crate) fn spell(&self, spot: Spot, block: &[u8], out: &mut Vec<u8>) -> bool {
        match spot.kind {
            SpotKind::Missing | SpotKind::Unfit | SpotKind::Filtered => return false,
            SpotKind::Text | SpotKind::Digits => out.extend_from_slice(spot.of(block)),
            SpotKind::Decoded | SpotKind::SwappedText | SpotKind::SwappedWord => {
                out.extend_from_slice(spot.of(&self.decoded));
            }
            // Writing to memory does not fail.
            SpotKind::Integer => _ = write!(out, "{}", spot.bits as i64),
            SpotKind::Unsigned => _ = write!(out, "{}", spot.bits),
            // One zero for both.
            SpotKind::Float => _ = write!(out, "{:?}", spot.float() + 0.0),
            SpotKind::Bool => {
                out.extend_from_slice(if spot.bits == 0 { b"false" } else { b"true" })
            }
        }
        true
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

/// Keeps some of the values, of which each record has so many.
fn retain<T: Copy>(values: &mut Vec<T>, width: usize, kept: &[bool]) {
    let mut to = 0;
    for (record, _) in kept.iter().enumerate().filter(|(_, kept)| **kept) {
        values.copy_within(record * width..(record + 1) * width, to);
        to += width;
    }
    values.truncate(to);
}

/// The value at a spot.
#[inline(always)]
pub(crate) fn value<'a>(spot: Spot, block: &'a [u8], decoded: &'a [u8]) -> Option<Value<'a>> {
    Some(match spot.kind {
        SpotKind::Missing | SpotKind::Unfit | SpotKind::Filtered => return None,
        // Put there once everything is decided.
        SpotKind::SwappedText | SpotKind::SwappedWord => return None,
        SpotKind::Text => Value::Text(spot.of(block)),
        SpotKind::Decoded => Value::Text(spot.of(decoded)),
        SpotKind::Integer => Value::Integer(spot.bits as i64),
        SpotKind::Unsigned => Value::Unsigned(spot.bits),
        SpotKind::Digits => Value::Digits(spot.of(block)),
        SpotKind::Float => Value::Float(spot.float()),
        SpotKind::Bool => Value::Bool(spot.bits != 0),
    })
}

/// A number or truth value, from the one spelling that [`Owned::spell`] gives it.
pub(crate) fn word(text: &[u8]) -> Option<Value<'_>> {
    let kind = match text {
        b"true" => return Some(Value::Bool(true)),
        b"false" => return Some(Value::Bool(false)),
        text if text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-') => Kind::Integer,
        _ => Kind::Number,
    };
    value(number(kind, text, 0), text, &[])
}

/// A field of some rows of a block, as the gate takes it.
pub(crate) struct Field<'a> {
    pub(crate) block: &'a [u8],
    pub(crate) spots: &'a [Spot],
    /// What was decoded for these rows.
    pub(crate) decoded: &'a [u8],
    pub(crate) may_miss: bool,
}

impl Column for Field<'_> {
    fn len(&self) -> usize {
        self.spots.len()
    }

    #[inline(always)]
    fn value(&self, row: usize) -> Option<Value<'_>> {
        value(*self.spots.get(row)?, self.block, self.decoded)
    }

    fn may_miss(&self) -> bool {
        self.may_miss
    }
}

/// A field that is plain text in all of these rows, as the gate takes it: nothing is asked about any
/// of them.
pub(crate) struct Texts<'a> {
    pub(crate) block: &'a [u8],
    pub(crate) spots: &'a [Spot],
}

impl Column for Texts<'_> {
    fn len(&self) -> usize {
        self.spots.len()
    }

    #[inline(always)]
    fn value(&self, row: usize) -> Option<Value<'_>> {
        Some(Value::Text(self.spots.get(row)?.of(self.block)))
    }

    fn may_miss(&self) -> bool {
        false
    }
}

/// A number's text as a value: the same as Python's `json` reads it.
pub(crate) fn number(kind: Kind, text: &[u8], start: usize) -> Spot {
    let unfit = Spot::word(SpotKind::Unfit, 0);
    // The scanner has checked that it is ASCII.
    let Ok(spelled) = std::str::from_utf8(text) else { return unfit };
    if kind == Kind::Number {
        return match spelled.parse::<f64>() {
            Ok(number) if number.is_finite() => Spot::word(SpotKind::Float, number.to_bits()),
            // Past what a float holds all numbers would be one value.
            _ => unfit,
        };
    }
    if let Ok(number) = spelled.parse::<i64>() {
        Spot::word(SpotKind::Integer, number as u64)
    } else if let Ok(number) = spelled.parse() {
        Spot::word(SpotKind::Unsigned, number)
    } else {
        Spot::text(SpotKind::Digits, start, start + text.len())
    }
}
