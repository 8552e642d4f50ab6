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

    #[cfg(test)]
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
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
}
