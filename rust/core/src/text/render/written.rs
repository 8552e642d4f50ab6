//! What leaves: text, or columns of it, and what is told beside.

use crate::meter::Sight;

/// One field of the records that leave, for formats made of columns: text, or nothing.
#[derive(Clone, Debug, Default)]
pub struct TextColumn {
    /// Where each value ends in `bytes`.
    pub ends: Vec<u64>,
    pub is_null: Vec<bool>,
    pub bytes: Vec<u8>,
}

impl TextColumn {
    pub(crate) fn close(&mut self, is_null: bool) {
        self.ends.push(self.bytes.len() as u64);
        self.is_null.push(is_null);
    }

    /// Each value, in their order.
    pub fn texts(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut start = 0;
        self.ends.iter().zip(&self.is_null).map(move |(end, is_null)| {
            let text = &self.bytes[start..*end as usize];
            start = *end as usize;
            (!is_null).then_some(text)
        })
    }
}

/// What leaves.
#[derive(Debug, Default)]
pub struct Written {
    pub text: Vec<u8>,
    /// For [`Output::Columns`]: the fields, in the plan's order.
    pub columns: Vec<TextColumn>,
    /// Records in it.
    pub records: u64,
    /// What an observer sees of it, where one is watched for.
    pub sights: Vec<Sight>,
    /// Of each record, where they are asked for.
    pub marks: Marks,
}

/// What is told of records beside their text.
#[derive(Debug, Default)]
pub struct Marks {
    /// Where each came from: the place in its block.
    pub(crate) starts: Vec<u32>,
    /// Where it ends in the text, behind its line break.
    pub(crate) ends: Vec<usize>,
    /// The first of its values that is released, as text and as it leaves.
    pub keys: TextColumn,
}

impl Written {
    /// Each record without its line break, where they were marked.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.marks.ends.iter().map(move |end| {
            let record = &self.text[start..end.saturating_sub(1).max(start)];
            start = *end;
            record
        })
    }
}
