//! Records that leave in the format they came in, each value as it came or not at all: the usual, and
//! by far the shortest way. Whatever else there is takes the general one, which writes the same.

use super::{Renderer, write_spot};
use crate::batch::VEILED;
use crate::pseudonym::Pseudonym;
use crate::text::cell::{Cell, Kind};
use crate::text::csv::quote_csv;
use crate::text::pen::{Piece, Sheet};
use crate::text::plan::{ATTRIBUTES, Empty, Output, Plan, Template, TextFormat, USER};
use crate::text::rows::Rows;

/// How plain records are written.
#[derive(Clone)]
pub(super) struct Plain {
    /// None for JSON.
    delimiter: Option<u8>,
    /// The text before each value, and the field whose value it is.
    values: Vec<(Piece, usize)>,
    closing: Piece,
}

/// The rows that leave, and all that is known of them.
pub(super) struct Leaving<'a> {
    pub(super) block: &'a [u8],
    pub(super) rows: &'a Rows,
    pub(super) leaving: &'a [u32],
    /// By attribute.
    pub(super) decisions: &'a [Vec<i8>],
    /// A pseudonym for each that leaves, if users leave under any.
    pub(super) made: Option<&'a [Option<Pseudonym>]>,
}

impl Renderer {
    /// The rows that leave, of so many.
    pub(super) fn leaving(&self, decisions: &[Vec<i8>], rows: usize) -> Vec<u32> {
        let mut leaving = vec![0; rows];
        let mut count = 0_usize;
        if let ([column], Empty::Drop) = (decisions, self.empty) {
            // No branch on the answer: it could not be predicted.
            for (row, decision) in column[..rows].iter().enumerate() {
                leaving[count] = row as u32;
                count = count.wrapping_add(usize::from(*decision != VEILED));
            }
        } else {
            for row in (0..rows).filter(|row| self.leaves(decisions, *row)) {
                leaving[count] = row as u32;
                count += 1;
            }
        }
        leaving.truncate(count);
        leaving
    }
}

impl Plain {
    /// `None` where records have to be written in the general way.
    pub(super) fn new(plan: &Plan) -> Option<Self> {
        let delimiter = match (plan.input, plan.output) {
            (TextFormat::Ndjson, Output::Text(TextFormat::Ndjson)) if !plan.keep_rest => None,
            (TextFormat::Csv(from), Output::Text(TextFormat::Csv(to))) if from == to => Some(to),
            _ => return None,
        };
        let is_plain = plan.leaving_step().is_none()
            && plan.hierarchies.iter().all(Option::is_none)
            && plan.swaps.iter().all(|share| *share <= 0.0);
        let none = Self { delimiter, values: Vec::new(), closing: Piece::new(Vec::new()) };
        is_plain.then_some(none)
    }

    pub(super) fn set_fields(&mut self, fields: usize, template: &Template) {
        if let Some(delimiter) = self.delimiter {
            let before = |field| if field == 0 { vec![] } else { vec![delimiter] };
            self.values = (0..fields).map(|field| (Piece::new(before(field)), field)).collect();
            self.closing = Piece::new(b"\n".to_vec());
        } else {
            self.values.clone_from(&template.values);
            self.closing = Piece::new([template.end.text(), b"}\n"].concat());
        }
    }

    /// `ends`: gets where each record ends.
    pub(super) fn render(
        &self,
        of: &Renderer,
        leaving: &Leaving,
        out: &mut Vec<u8>,
        ends: Option<&mut Vec<usize>>,
    ) {
        match self.delimiter {
            None => self.write::<true>(of, leaving, out, ends),
            Some(_) => self.write::<false>(of, leaving, out, ends),
        }
    }

    #[inline(never)]
    fn write<const JSON: bool>(
        &self,
        of: &Renderer,
        leaving: &Leaving,
        out: &mut Vec<u8>,
        mut ends: Option<&mut Vec<usize>>,
    ) {
        let Leaving { block, rows, leaving, decisions, made } = *leaving;
        // Some readers take a CR for the end of a line, all of them one before a line feed.
        let may_break = !JSON && may_hold_return(block, rows, of.cells);
        let nothing: &[u8] = if JSON { b"null" } else { b"" };
        let mut sheet = Sheet::new(out);
        let mut spelled = Vec::new();
        for (place, row) in leaving.iter().enumerate() {
            let row = *row as usize;
            let start = rows.starts[row] as usize;
            let cells = rows.cells_of(row, of.cells);
            for (before, field) in &self.values {
                before.put_on(&mut sheet);
                if *field == USER
                    && let Some(made) = made
                {
                    match made.get(place).copied().flatten() {
                        Some(name) => put_name::<JSON>(name, &mut spelled, &mut sheet),
                        None => sheet.put(nothing),
                    }
                    continue;
                }
                // Of time and user it is past all attributes.
                let attribute = field.wrapping_sub(ATTRIBUTES);
                if let Some(column) = decisions.get(attribute)
                    && column[row] == VEILED
                {
                    of.veils[attribute].spelled.put_on(&mut sheet);
                    continue;
                }
                if JSON
                    && let Some(spots) = rows.attributes.get(attribute)
                    && spots[row].has_spellings()
                {
                    spelled.clear();
                    write_spot(spots[row], rows, true, &mut spelled);
                    sheet.put(&spelled);
                    continue;
                }
                let cell = &cells[*field];
                if cell.kind == Kind::Absent {
                    sheet.put(nothing);
                } else if !JSON && (cell.quoted || may_break) {
                    spelled.clear();
                    self.quote(of, block, start, cell, &mut spelled);
                    sheet.put(&spelled);
                } else {
                    let (from, to) = (cell.start as usize, cell.end as usize);
                    sheet.put_from(block, start.wrapping_add(from), start.wrapping_add(to));
                }
            }
            self.closing.put_on(&mut sheet);
            if let Some(ends) = &mut ends {
                ends.push(sheet.len());
            }
        }
        sheet.turn();
    }

    /// A field of CSV that was quoted or may have to be.
    fn quote(&self, of: &Renderer, block: &[u8], start: usize, cell: &Cell, out: &mut Vec<u8>) {
        let raw = Rows::raw(block, start as u32, cell);
        let Some(delimiter) = self.delimiter else { return };
        if !cell.quoted && memchr::memchr(b'\r', raw).is_none() {
            out.extend_from_slice(raw);
        } else if cell.kind == Kind::EscapedText {
            let mut text = Vec::new();
            of.input.decode(raw, &mut text);
            quote_csv(&text, delimiter, out);
        } else if cell.kind != Kind::Null {
            quote_csv(raw, delimiter, out);
        }
    }
}

/// Whether a CR is anywhere in these rows.
fn may_hold_return(block: &[u8], rows: &Rows, cells: usize) -> bool {
    let (Some(first), Some(last)) = (rows.starts.first(), rows.starts.last()) else { return false };
    let behind = rows.cells_of(rows.starts.len() - 1, cells).iter().map(|cell| cell.end).max();
    let end = *last as usize + behind.unwrap_or_default() as usize;
    memchr::memchr(b'\r', &block[*first as usize..end]).is_some()
}

#[inline(always)]
fn put_name<const QUOTED: bool>(name: Pseudonym, spelled: &mut Vec<u8>, sheet: &mut Sheet) {
    if let Some((text, len)) = name.letters::<QUOTED>() {
        return sheet.put_start(&text, len);
    }
    spelled.clear();
    spelled.extend(QUOTED.then_some(b'"'));
    name.put(spelled);
    spelled.extend(QUOTED.then_some(b'"'));
    sheet.put(spelled);
}
