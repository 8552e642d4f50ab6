//! Short pieces of text, appended without a call for each.
//!
//! Most of what a record is written from is shorter than 32 bytes, and a copy of 32 bytes is two
//! instructions: so that many are copied and the end is set back. (Copies of the exact length took a
//! quarter of the time of writing a record.)

const SHORT: usize = 32;

/// Text that is written again and again.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    start: [u8; SHORT],
    text: Vec<u8>,
}

impl Piece {
    pub(crate) fn new(text: Vec<u8>) -> Self {
        let mut start = [0; SHORT];
        let len = text.len().min(SHORT);
        start[..len].copy_from_slice(&text[..len]);
        Self { start, text }
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    #[inline(always)]
    pub(crate) fn put_on(&self, sheet: &mut Sheet) {
        if self.text.len() <= SHORT {
            sheet.put_start(&self.start, self.text.len());
        } else {
            sheet.put(&self.text);
        }
    }

    #[inline(always)]
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        if self.text.len() <= SHORT {
            put_start(out, &self.start, self.text.len());
        } else {
            out.extend_from_slice(&self.text);
        }
    }
}

/// Appends `block[start..end]`.
#[inline(always)]
pub(crate) fn put_from(out: &mut Vec<u8>, block: &[u8], start: usize, end: usize) {
    let len = end.saturating_sub(start);
    match block.get(start..).and_then(<[u8]>::first_chunk) {
        Some(first) if len <= SHORT => put_start(out, first, len),
        _ => out.extend_from_slice(&block[start..end]),
    }
}

/// Appends the first `len` bytes.
#[inline(always)]
fn put_start(out: &mut Vec<u8>, bytes: &[u8; SHORT], len: usize) {
    let end = out.len().wrapping_add(len);
    out.extend_from_slice(bytes);
    out.truncate(end);
}

/// Bytes of a sheet.
const FULL: usize = 4096;

/// A piece of memory of a fixed size that pieces are put on before they go where they belong, all at
/// once: its end is a number at hand, where that of a vector is one in memory that is asked for each
/// piece whether there is room.
pub(crate) struct Sheet<'a> {
    bytes: [u8; FULL],
    end: usize,
    out: &'a mut Vec<u8>,
}

impl<'a> Sheet<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { bytes: [0; FULL], end: 0, out }
    }

    /// Bytes of all that was written by now.
    pub(crate) fn len(&self) -> usize {
        self.out.len() + self.end
    }

    /// Lets what was put on it go on. To be called at the end.
    pub(crate) fn turn(&mut self) {
        self.end = hand_on(self.out, &self.bytes, self.end, &[]);
    }

    /// Appends the first `len` bytes.
    #[inline(always)]
    pub(crate) fn put_start(&mut self, bytes: &[u8; SHORT], len: usize) {
        if self.end > FULL - SHORT {
            self.end = hand_on(self.out, &self.bytes, self.end, &[]);
        }
        self.bytes[self.end..self.end + SHORT].copy_from_slice(bytes);
        self.end = self.end.wrapping_add(len.min(SHORT));
    }

    /// Appends `block[start..end]`.
    #[inline(always)]
    pub(crate) fn put_from(&mut self, block: &[u8], start: usize, end: usize) {
        let len = end.saturating_sub(start);
        match block.get(start..).and_then(<[u8]>::first_chunk) {
            Some(first) if len <= SHORT => self.put_start(first, len),
            _ => self.put(&block[start..end]),
        }
    }

    /// Appends text of any length.
    #[inline(always)]
    pub(crate) fn put(&mut self, text: &[u8]) {
        self.end = hand_on(self.out, &self.bytes, self.end, text);
    }
}

/// Appends the first bytes of a sheet and a text behind them. The sheet is blank then: its end is 0.
/// (It does not take the sheet itself, whose end would be kept in memory for it.)
#[inline(never)]
fn hand_on(out: &mut Vec<u8>, bytes: &[u8; FULL], end: usize, text: &[u8]) -> usize {
    out.extend_from_slice(&bytes[..end]);
    out.extend_from_slice(text);
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_length_are_whole() {
        let block: Vec<u8> = (0..=255).collect();
        let mut out = b"before".to_vec();
        let mut wanted = out.clone();
        for len in 0..70 {
            for start in [0, 3, 256 - len] {
                put_from(&mut out, &block, start, start + len);
                Piece::new(block[start..start + len].to_vec()).put(&mut out);
                wanted.extend_from_slice(&block[start..start + len].repeat(2));
                assert_eq!(out, wanted);
            }
        }
    }

    #[test]
    fn a_sheet_is_turned_as_often_as_it_is_full() {
        let block: Vec<u8> = (0..=255).collect();
        let mut out = b"before".to_vec();
        let mut wanted = out.clone();
        let mut sheet = Sheet::new(&mut out);
        for round in 0..3000 {
            let (start, len) = (round * 7 % 180, round * 31 % 70);
            sheet.put_from(&block, start, start + len);
            Piece::new(block[start..start + len].to_vec()).put_on(&mut sheet);
            wanted.extend_from_slice(&block[start..start + len].repeat(2));
            if round % 100 == 0 {
                sheet.put(b"anything");
                wanted.extend_from_slice(b"anything");
            }
        }
        sheet.turn();
        assert_eq!(out, wanted);
    }
}
