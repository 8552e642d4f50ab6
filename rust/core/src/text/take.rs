//! A record's values, taken for the gate: the time, the user, the attributes and their coarser labels.

use super::cell::{Cell, Kind};
use super::plan::{ATTRIBUTES, TIME, TextFormat, USER};
use super::problem::Problem;
use super::rows::{Rows, Spot, SpotKind, number, value};
use super::time::TimeFormat;
use crate::column::Value;
use crate::ladder::{Labels, Ladder, Place};
use crate::names::NameFilter;
use std::sync::Arc;

/// What is taken of every record of a stream.
pub(super) struct Taken {
    pub(super) input: TextFormat,
    pub(super) attributes: usize,
    /// For each attribute its ladder, and for a position where its longitude is among the cells that
    /// are read beside those of the fields.
    pub(super) ladders: Vec<Option<(Arc<Ladder>, Option<usize>)>>,
    /// Cells of the fields that leave; those read beside them follow.
    pub(super) fields: usize,
    pub(super) filters: Vec<Arc<NameFilter>>,
    /// The format of times was not stated: a number that is of another unit by its size is bad.
    pub(super) is_guessed: bool,
    /// Attributes may be absent: they have no value then.
    pub(super) is_sparse: bool,
    /// Whether records have an id, in the last cell that is read (of JSON: in this one).
    pub(super) id: Option<usize>,
}

/// A record whose values are taken for the gate.
pub(super) struct Taking<'a, const JSON: bool> {
    pub(super) of: &'a Taken,
    pub(super) start: usize,
    pub(super) block: &'a [u8],
    /// Where the scanner has read it.
    pub(super) time: Option<i64>,
}

impl<const JSON: bool> Taking<'_, JSON> {
    /// Takes all or nothing.
    #[inline(always)]
    pub(super) fn take(
        &self,
        cells: &[Cell],
        format: &mut Option<TimeFormat>,
        rows: &mut Rows,
    ) -> Result<(), (Problem, usize)> {
        let found = &cells[ATTRIBUTES..ATTRIBUTES + self.of.attributes];
        let is_absent = |cell: &Cell| cell.kind == Kind::Absent;
        if is_absent(&cells[USER]) || !self.of.is_sparse && found.iter().all(is_absent) {
            return Err((Problem::MissingField, 0));
        }
        let time = match self.time {
            Some(time) => time,
            None => self.time(&cells[TIME], format, &mut rows.scratch)?,
        };
        let user = self.spot(&cells[USER], &mut rows.decoded);
        if !is_user(user) {
            return Err((Problem::WrongType, cells[USER].start as usize));
        }
        for (number, cell) in found.iter().enumerate() {
            let spot = self.spot(cell, &mut rows.decoded);
            if spot.kind() == SpotKind::Unfit {
                return Err(rows.take_back(cell));
            }
            let passes = self.passes(number, spot, &rows.decoded);
            rows.attributes[number].push(if passes { spot } else { Spot::filtered() });
        }
        if !self.of.ladders.is_empty() {
            self.climb(rows.times.len(), cells, rows)?;
        }
        if let Some(place) = self.of.id {
            self.take_id(&cells[place], rows)?;
        }
        rows.times.push(time);
        rows.users.push(user);
        rows.starts.push(self.start as u32);
        Ok(())
    }

    #[inline(never)]
    fn take_id(&self, cell: &Cell, rows: &mut Rows) -> Result<(), (Problem, usize)> {
        let spot = self.spot(cell, &mut rows.decoded);
        if spot.kind() == SpotKind::Unfit {
            return Err(rows.take_back(cell));
        }
        rows.ids.push(spot);
        Ok(())
    }

    /// Adds the coarser labels of the attributes of rows whose values all lie in the block.
    pub(super) fn climb_rows(&self, first: usize, rows: &mut Rows) {
        let mut column = 0;
        for (attribute, ladder) in self.of.ladders.iter().enumerate() {
            let Some((ladder, _)) = ladder else { continue };
            let Rows { attributes, decoded, places, coarser, .. } = rows;
            places.clear();
            let spots = &attributes[attribute][first..];
            let values = spots.iter().map(|spot| value(*spot, self.block, &[]));
            ladder.climb_many(values, &mut Labels { text: decoded, places });
            for labels in places.chunks_exact(ladder.labels()) {
                for (level, place) in labels.iter().enumerate() {
                    coarser[column + level].push(spot_of(place));
                }
            }
            column += ladder.labels();
        }
    }

    /// Adds the coarser labels of the attributes of a row that have any. It fails at none but those of
    /// positions, which alone need the cells.
    pub(super) fn climb(
        &self,
        row: usize,
        cells: &[Cell],
        rows: &mut Rows,
    ) -> Result<(), (Problem, usize)> {
        let mut column = 0;
        for (number, ladder) in self.of.ladders.iter().enumerate() {
            let Some((ladder, beside)) = ladder else { continue };
            let spot = rows.attributes[number][row];
            let mut places = std::mem::take(&mut rows.places);
            let mut scratch = std::mem::take(&mut rows.scratch);
            places.clear();
            // Labels go to where the value itself may be: it is copied from there.
            scratch.clear();
            if spot.kind() == SpotKind::Decoded {
                scratch.extend_from_slice(spot.of(&rows.decoded));
            }
            let finest = match spot.kind() {
                SpotKind::Decoded => Some(Value::Text(&scratch)),
                _ => value(spot, self.block, &[]),
            };
            if let Some(beside) = beside {
                let cell = &cells[self.of.fields + beside];
                let other = self.spot(cell, &mut rows.decoded);
                if other.kind() == SpotKind::Unfit {
                    return Err(rows.take_back(cell));
                }
                let text =
                    (other.kind() == SpotKind::Decoded).then(|| other.of(&rows.decoded).to_vec());
                let other = match &text {
                    Some(text) => Some(Value::Text(text)),
                    None => value(other, self.block, &[]),
                };
                let mut labels = Labels { text: &mut rows.decoded, places: &mut places };
                ladder.climb_position(finest, other, &mut labels);
            } else {
                let mut labels = Labels { text: &mut rows.decoded, places: &mut places };
                ladder.climb(finest, &mut labels);
            }
            let mut spots = places.iter().map(spot_of);
            if beside.is_some() {
                // The exact position is no level.
                rows.attributes[number][row] = spots.next().unwrap_or_default();
            }
            for spot in spots {
                rows.coarser[column].push(spot);
                column += 1;
            }
            rows.places = places;
            rows.scratch = scratch;
        }
        Ok(())
    }

    /// Whether a value of an attribute counts at all.
    #[inline(always)]
    fn passes(&self, attribute: usize, spot: Spot, decoded: &[u8]) -> bool {
        let Some(filter) = self.of.filters.get(attribute) else { return true };
        match value(spot, self.block, decoded) {
            None => true,
            Some(Value::Text(text)) => filter.passes(Some(text)),
            Some(_) => filter.passes(None),
        }
    }

    /// Where the text of a cell lies, without its quotes.
    #[inline(always)]
    fn inside(&self, cell: &Cell) -> (usize, usize) {
        let is_text = matches!(cell.kind, Kind::Text | Kind::EscapedText);
        let quote = usize::from(JSON && is_text);
        let (start, end) = (cell.start as usize, cell.end as usize);
        (self.start.wrapping_add(start + quote), self.start.wrapping_add(end).wrapping_sub(quote))
    }

    #[inline(always)]
    fn time(
        &self,
        cell: &Cell,
        format: &mut Option<TimeFormat>,
        scratch: &mut Vec<u8>,
    ) -> Result<i64, (Problem, usize)> {
        let column = cell.start as usize;
        let (start, end) = self.inside(cell);
        let text = match cell.kind {
            Kind::Text | Kind::Integer | Kind::Number => &self.block[start..end],
            Kind::EscapedText => {
                scratch.clear();
                self.of.input.decode(&self.block[start..end], scratch);
                &scratch[..]
            }
            Kind::Absent => return Err((Problem::MissingField, 0)),
            Kind::Null => return Ok(i64::MIN),
            _ => return Err((Problem::WrongType, column)),
        };
        if format.is_none() {
            *format = TimeFormat::detect(text);
        }
        let time = format.and_then(|format| {
            let time = format.parse(text)?;
            (!self.of.is_guessed || format.is_likely(time)).then_some(time)
        });
        time.ok_or((Problem::Time, column))
    }

    #[inline(always)]
    fn spot(&self, cell: &Cell, decoded: &mut Vec<u8>) -> Spot {
        let (start, end) = self.inside(cell);
        match cell.kind {
            Kind::Text => Spot::text(SpotKind::Text, start, end),
            Kind::EscapedText => {
                let first = decoded.len();
                self.of.input.decode(&self.block[start..end], decoded);
                Spot::text(SpotKind::Decoded, first, decoded.len())
            }
            Kind::Integer | Kind::Number => number(cell.kind, &self.block[start..end], start),
            Kind::True => Spot::word(SpotKind::Bool, 1),
            Kind::False => Spot::word(SpotKind::Bool, 0),
            Kind::Null | Kind::Absent => Spot::default(),
            Kind::Object | Kind::Array => Spot::word(SpotKind::Unfit, 0),
        }
    }
}

/// No truth value is anybody's id, and no number with a fraction.
#[inline(always)]
pub(super) fn is_user(user: Spot) -> bool {
    match user.kind() {
        SpotKind::Bool | SpotKind::Unfit => false,
        SpotKind::Float => user.float().fract() == 0.0,
        _ => true,
    }
}

/// Where the gate finds a label.
fn spot_of(place: &Place) -> Spot {
    match place {
        Some(place) => Spot::text(SpotKind::Decoded, place.start, place.end),
        None => Spot::default(),
    }
}
