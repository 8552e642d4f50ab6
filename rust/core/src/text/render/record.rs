//! One record, written in the general way: value by value.

use super::{Renderer, TextColumn};
use crate::pseudonym::Pseudonym;
use crate::text::cell::{Cell, Kind};
use crate::text::csv::quote_csv;
use crate::text::json::quote_json;
use crate::text::plan::{ATTRIBUTES, TIME, TextFormat, USER};
use crate::text::rows::{Rows, Spot, SpotKind};
use crate::text::stamp;
use crate::text::time::TimeFormat;
use std::io::Write;

/// A record that is being written.
pub(super) struct Record<'a> {
    pub(super) of: &'a Renderer,
    pub(super) block: &'a [u8],
    pub(super) rows: &'a Rows,
    pub(super) row: usize,
    /// By attribute.
    pub(super) decisions: &'a [Vec<i8>],
    pub(super) start: u32,
    pub(super) time_format: Option<TimeFormat>,
    /// What the user leaves as; the inner `None` where there is none. The outer: as it is.
    pub(super) pseudonym: Option<Option<Pseudonym>>,
    pub(super) scratch: &'a mut Vec<u8>,
}

impl Record<'_> {
    #[inline(always)]
    pub(super) fn json(
        &mut self,
        cells: &[Cell],
        shown: impl Fn(usize) -> bool,
        out: &mut Vec<u8>,
    ) {
        for (before, field) in &self.of.template.values {
            before.put(out);
            if !shown(*field) {
                self.of.veils[*field - ATTRIBUTES].spelled.put(out);
            } else if *field == TIME && self.of.step.is_some() {
                self.json_time(&cells[TIME], out);
            } else if let (USER, Some(pseudonym)) = (*field, &self.pseudonym) {
                match pseudonym {
                    Some(name) => {
                        out.push(b'"');
                        name.put(out);
                        out.push(b'"');
                    }
                    None => out.extend_from_slice(b"null"),
                }
            } else if let Some(spot) = self.respelled(*field) {
                write_spot(spot, self.rows, true, out);
            } else {
                self.json_value(&cells[*field], *field == TIME, out);
            }
        }
        self.of.template.end.put(out);
        for (key, value) in self.rows.rest_of(self.row) {
            if out.last() != Some(&b'{') {
                out.push(b',');
            }
            out.extend_from_slice(Rows::raw(self.block, self.start, key));
            out.push(b':');
            out.extend_from_slice(Rows::raw(self.block, self.start, value));
        }
        out.extend_from_slice(b"}\n");
    }

    /// A rounded time, within quotes if it was, or is no number.
    #[inline(never)]
    fn json_time(&self, cell: &Cell, out: &mut Vec<u8>) {
        let Some((format, time)) = self.rounded() else {
            return out.extend_from_slice(b"null");
        };
        let was_quoted = self.of.input == TextFormat::Ndjson
            && matches!(cell.kind, Kind::Text | Kind::EscapedText);
        let quotes: &[u8] = if was_quoted || format == TimeFormat::Iso { b"\"" } else { b"" };
        out.extend_from_slice(quotes);
        stamp::write(format, time, out);
        out.extend_from_slice(quotes);
    }

    /// The time as it leaves where it is rounded; `None` where there is none.
    fn rounded(&self) -> Option<(TimeFormat, i64)> {
        let time = self.of.step?.floor(self.rows.times[self.row])?;
        Some((self.time_format?, time))
    }

    #[inline(always)]
    fn json_value(&mut self, cell: &Cell, is_time: bool, out: &mut Vec<u8>) {
        if self.of.input == TextFormat::Ndjson && cell.kind != Kind::Absent {
            return Rows::put(out, self.block, self.start, cell);
        }
        let raw = Rows::raw(self.block, self.start, cell);
        match cell.kind {
            Kind::Absent | Kind::Null => out.extend_from_slice(b"null"),
            // CSV knows no types; of a time it is known that it is a number, or that it is not.
            Kind::Text if is_time && is_json_number(raw) => out.extend_from_slice(raw),
            Kind::Text => quote_json(raw, out),
            _ => {
                self.scratch.clear();
                self.of.input.decode(raw, self.scratch);
                quote_json(self.scratch, out);
            }
        }
    }

    pub(super) fn csv(
        &mut self,
        cells: &[Cell],
        shown: impl Fn(usize) -> bool,
        delimiter: u8,
        out: &mut Vec<u8>,
    ) {
        let same = self.of.input == TextFormat::Csv(delimiter);
        for (field, cell) in cells.iter().enumerate() {
            if field > 0 {
                out.push(delimiter);
            }
            if !shown(field) {
                self.of.veils[field - ATTRIBUTES].spelled.put(out);
            } else if field == TIME && self.of.step.is_some() {
                if let Some((format, time)) = self.rounded() {
                    stamp::write(format, time, out);
                }
            } else if let (USER, Some(pseudonym)) = (field, &self.pseudonym) {
                pseudonym.iter().for_each(|name| name.put(out));
            } else if same
                && !cell.quoted
                && self.label(field).is_none()
                && !self.holds_return(cell)
            {
                Rows::put(out, self.block, self.start, cell);
            } else if let Some(spot) = self.respelled(field) {
                self.scratch.clear();
                let mut text = std::mem::take(self.scratch);
                write_spot(spot, self.rows, false, &mut text);
                quote_csv(&text, delimiter, out);
                *self.scratch = text;
            } else if let Some(text) = self.text(cell) {
                let text = text.to_vec();
                quote_csv(&text, delimiter, out);
            }
        }
        out.push(b'\n');
    }

    pub(super) fn columns(
        &mut self,
        cells: &[Cell],
        shown: impl Fn(usize) -> bool,
        columns: &mut [TextColumn],
    ) {
        for (field, (cell, column)) in cells.iter().zip(columns).enumerate() {
            let text = if !shown(field) {
                let veil = &self.of.veils[field - ATTRIBUTES];
                veil.spelled.put(&mut column.bytes);
                !veil.is_null
            } else if let (USER, Some(pseudonym)) = (field, &self.pseudonym) {
                pseudonym.iter().for_each(|name| name.put(&mut column.bytes));
                pseudonym.is_some()
            } else if field == TIME {
                // Told in one way: nanoseconds. The caller makes a time of it.
                let exact = Some(self.rows.times[self.row]).filter(|time| *time != i64::MIN);
                let time = match self.of.step {
                    Some(step) => exact.and_then(|time| step.floor(time)),
                    None => exact,
                };
                column.bytes.extend_from_slice(&time.unwrap_or(i64::MIN).to_le_bytes());
                time.is_some()
            } else if let Some(spot) = self.respelled(field) {
                write_spot(spot, self.rows, false, &mut column.bytes);
                spot.kind() != SpotKind::Missing
            } else if let Some(text) = self.text(cell) {
                column.bytes.extend_from_slice(text);
                true
            } else {
                false
            };
            column.close(!text);
        }
    }

    /// As [`Renderer::label`], of a field.
    #[inline(always)]
    fn label(&self, field: usize) -> Option<Spot> {
        self.of.label(self.rows, self.row, field.checked_sub(ATTRIBUTES)?, self.decisions)
    }

    /// The value of an attribute that JSON can spell in several ways. It leaves in one: whoever
    /// spells it in a way of their own would stand out from the crowd that they are released with.
    #[inline(always)]
    fn respelled(&self, field: usize) -> Option<Spot> {
        if let Some(label) = self.label(field) {
            return Some(label);
        }
        if self.of.input != TextFormat::Ndjson {
            return None;
        }
        let spot = *self.rows.attributes.get(field.checked_sub(ATTRIBUTES)?)?.get(self.row)?;
        spot.has_spellings().then_some(spot)
    }

    /// Some readers take a CR for the end of a line, all of them one before a line feed.
    fn holds_return(&self, cell: &Cell) -> bool {
        memchr::memchr(b'\r', Rows::raw(self.block, self.start, cell)).is_some()
    }

    /// A value as plain text; `None` where there is none. JSON that is no string stays JSON.
    fn text(&mut self, cell: &Cell) -> Option<&[u8]> {
        let is_json = self.of.input == TextFormat::Ndjson;
        let raw = Rows::raw(self.block, self.start, cell);
        match cell.kind {
            Kind::Absent | Kind::Null => None,
            Kind::Text if is_json => Some(&raw[1..raw.len() - 1]),
            Kind::EscapedText => {
                self.scratch.clear();
                self.of.input.decode(raw, self.scratch);
                Some(self.scratch)
            }
            _ => Some(raw),
        }
    }
}

/// Writes a value in the one way it leaves.
pub(super) fn write_spot(spot: Spot, rows: &Rows, quoted: bool, out: &mut Vec<u8>) {
    match spot.kind() {
        SpotKind::SwappedWord => out.extend_from_slice(spot.of(&rows.decoded)),
        SpotKind::Decoded | SpotKind::SwappedText => {
            let text = spot.of(&rows.decoded);
            if quoted { quote_json(text, out) } else { out.extend_from_slice(text) }
        }
        // As Python prints it, near enough: the fewest digits, and never those of an integer.
        // Writing to memory does not fail.
        SpotKind::Missing if quoted => out.extend_from_slice(b"null"),
        SpotKind::Missing => {}
        SpotKind::Float => _ = write!(out, "{:?}", spot.float()),
        _ => out.push(b'0'),
    }
}

fn is_json_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, fraction) = match memchr::memchr(b'.', digits) {
        Some(dot) => (&digits[..dot], Some(&digits[dot + 1..])),
        None => (digits, None),
    };
    let all_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    all_digits(whole) && (whole.len() == 1 || whole[0] != b'0') && fraction.is_none_or(all_digits)
}
