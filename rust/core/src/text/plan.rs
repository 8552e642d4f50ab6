//! What is taken from a record and what leaves of it.

use super::csv::unquote_csv;
use super::json::{quote_json, unescape_json};
use super::log::{LogFormat, unescape};
use super::pen::Piece;
use super::stamp::Step;
use super::time::TimeFormat;
use crate::ladder::Ladder;
use crate::names::NameFilter;
use std::sync::Arc;

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    Ndjson,
    /// Comma, tab or another delimiter.
    Csv(u8),
    /// Only read, never written.
    Log(LogFormat),
}

impl TextFormat {
    /// What times are, where the format tells.
    pub fn time_format(self) -> Option<TimeFormat> {
        match self {
            TextFormat::Ndjson | TextFormat::Csv(_) => None,
            TextFormat::Log(format) => Some(format.time_format()),
        }
    }

    /// Decodes a value that had to be escaped.
    pub(crate) fn decode(self, raw: &[u8], out: &mut Vec<u8>) {
        match self {
            TextFormat::Ndjson => unescape_json(raw, out),
            TextFormat::Csv(_) => unquote_csv(raw, out),
            TextFormat::Log(format) => unescape(raw, format == LogFormat::Combined, out),
        }
    }
}

/// Where released records go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Text(TextFormat),
    /// Each field by itself, for formats that are made of columns.
    Columns,
    /// Nowhere: only counted.
    Nothing,
}

/// What becomes of a record with nothing released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    Drop,
    /// It leaves all the same, its values veiled. That shows that its user was active.
    Blank,
}

/// All that is said about a stream of records before it begins.
#[derive(Clone, Debug)]
pub struct Plan {
    pub input: TextFormat,
    pub output: Output,
    /// Names of the fields that leave, in this order: time, user, attributes, then what is kept. In
    /// JSON a name is a path: `page.host` is the member `host` of the member `page`, and a dot that
    /// belongs to a name has a backslash before it.
    pub fields: Vec<String>,
    /// JSON as Zeek writes it: a dot always belongs to its name, and a field without a value is left
    /// out.
    pub flat: bool,
    pub attributes: usize,
    /// What a veiled value of each attribute becomes: a text, or `None` for null.
    pub veiled: Vec<Option<String>>,
    /// For each attribute where its coarser labels come from, if it has any.
    pub hierarchies: Vec<Option<Hierarchy>>,
    /// For each attribute the share of released values that leave as another; empty for none.
    pub swaps: Vec<f64>,
    /// Which values of each attribute count; empty where all of all do.
    pub filters: Vec<Arc<NameFilter>>,
    /// Fields that have no name here leave too.
    pub keep_rest: bool,
    pub empty: Empty,
    /// Found out from the first record that has a time, if not stated.
    pub time_format: Option<TimeFormat>,
    /// Times leave as the beginning of the step they lie in. Decisions go by the exact time.
    pub step: Option<Step>,
    /// Bytes in a line at most.
    pub max_line: usize,
    /// The first bad line ends it.
    pub stop_at_problem: bool,
    /// The year of the first time that is written without one.
    pub year: Option<i64>,
    /// The field that tells whether an event came before. It leaves only if it is one of `fields`.
    pub id_field: Option<String>,
}

impl Plan {
    /// Nothing but what must be said: the formats, and the fields, of which so many are attributes.
    pub fn new(input: TextFormat, output: Output, fields: Vec<String>, attributes: usize) -> Self {
        Self {
            input,
            output,
            fields,
            flat: false,
            attributes,
            veiled: Vec::new(),
            hierarchies: Vec::new(),
            swaps: Vec::new(),
            filters: Vec::new(),
            keep_rest: false,
            empty: Empty::Drop,
            time_format: input.time_format(),
            step: None,
            max_line: 1 << 20,
            stop_at_problem: false,
            year: None,
            id_field: None,
        }
    }

    /// The step of the times that leave. A program's own way to write times is none for others to
    /// read: they leave as ISO 8601, in whole seconds.
    pub(crate) fn leaving_step(&self) -> Option<Step> {
        match self.input {
            TextFormat::Log(format) if format.has_own_times() => {
                self.step.or(Step::new(1_000_000_000))
            }
            _ => self.step,
        }
    }

    /// The members that the name of a field goes through.
    pub(crate) fn path(&self, name: &str) -> Vec<String> {
        if self.input == TextFormat::Ndjson && !self.flat {
            path(name)
        } else {
            vec![name.to_owned()]
        }
    }
}

/// The coarser labels of an attribute.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    pub ladder: Arc<Ladder>,
    /// The fields of latitude and longitude, for an attribute that is made of a position. Neither
    /// leaves, and the attribute's own name is none of a field that is read.
    pub position: Option<[String; 2]>,
}

impl Plan {
    /// The positions among the attributes: the number of each, and its fields.
    pub(crate) fn positions(&self) -> impl Iterator<Item = (usize, &[String; 2])> {
        self.hierarchies
            .iter()
            .enumerate()
            .filter_map(|(number, one)| Some((number, one.as_ref()?.position.as_ref()?)))
    }

    /// How many coarser labels each attribute has; `None` for one without a hierarchy.
    pub(crate) fn coarser_of_each(&self) -> impl Iterator<Item = Option<usize>> {
        let of = |number| self.hierarchies.get(number).and_then(Option::as_ref);
        (0..self.attributes).map(move |number| of(number).map(|one| one.ladder.levels() - 1))
    }

    /// How many columns of coarser labels there are.
    pub(crate) fn coarser(&self) -> usize {
        self.coarser_of_each().flatten().sum()
    }

    /// What is read for each field that leaves: itself, or the latitude of a position.
    pub(crate) fn read_for(&self, fields: &[String]) -> Vec<String> {
        let mut names = fields.to_vec();
        for (number, [latitude, _]) in self.positions() {
            names[ATTRIBUTES + number].clone_from(latitude);
        }
        names
    }

    /// What is read beside the fields that leave: the longitudes, then the id.
    pub(crate) fn read_beside(&self) -> Vec<String> {
        let longitudes = self.positions().map(|(_, [_, longitude])| longitude.clone());
        longitudes.chain(self.id_field.clone()).collect()
    }

    /// The cell that the id is read into, among those of a record; where there is a header, once that
    /// was read it is the last.
    pub(crate) fn id_cell(&self) -> Option<usize> {
        let id = self.id_field.as_ref()?;
        self.read_in_json().iter().position(|name| name == id)
    }

    /// All that is looked for in a JSON record. A field that is called as a position leaves is found
    /// and not used, or it would leave with the others.
    pub(crate) fn read_in_json(&self) -> Vec<String> {
        let mut names = self.read_for(&self.fields);
        for name in self.read_beside() {
            // Of one path that is looked for twice only the first is found.
            if self.id_field.as_ref() != Some(&name) || !names.contains(&name) {
                names.push(name);
            }
        }
        for (number, _) in self.positions() {
            let name = &self.fields[ATTRIBUTES + number];
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }
}

/// Places in [`Plan::fields`].
pub(crate) const TIME: usize = 0;
pub(crate) const USER: usize = 1;
pub(crate) const ATTRIBUTES: usize = 2;

/// The members that a path goes through.
pub fn path(name: &str) -> Vec<String> {
    let mut path = vec![String::new()];
    let mut letters = name.chars();
    while let Some(letter) = letters.next() {
        let last = path.len() - 1;
        match letter {
            '\\' => path[last].extend(letters.next()),
            '.' => path.push(String::new()),
            _ => path[last].push(letter),
        }
    }
    path
}

/// A JSON record as it leaves: what stands around its values.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    /// The text before each value, and the field whose value it is.
    pub(crate) values: Vec<(Piece, usize)>,
    /// The text behind the last value, but for the record's own closing brace.
    pub(crate) end: Piece,
}

impl Template {
    pub(crate) fn new(paths: &[Vec<String>]) -> Self {
        let mut template = Self { values: Vec::new(), end: Piece::new(Vec::new()) };
        let fields: Vec<_> = paths.iter().map(Vec::as_slice).enumerate().collect();
        let mut text = Vec::new();
        template.object(&fields, &mut text);
        // The last brace is written behind what is kept beside the fields.
        text.pop();
        template.end = Piece::new(text);
        template
    }

    fn object(&mut self, fields: &[(usize, &[String])], text: &mut Vec<u8>) {
        text.push(b'{');
        let mut written: Vec<&String> = Vec::new();
        for (field, path) in fields {
            let Some((name, below)) = path.split_first() else { continue };
            if written.contains(&name) {
                continue;
            }
            if !written.is_empty() {
                text.push(b',');
            }
            written.push(name);
            quote_json(name.as_bytes(), text);
            text.push(b':');
            if below.is_empty() {
                self.values.push((Piece::new(std::mem::take(text)), *field));
                continue;
            }
            let inside: Vec<_> = fields
                .iter()
                .filter(|(_, path)| path.first() == Some(name))
                .map(|(field, path)| (*field, &path[1..]))
                .collect();
            self.object(&inside, text);
        }
        text.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_goes_into_a_member() {
        assert_eq!(path("host"), ["host"]);
        assert_eq!(path("page.host"), ["page", "host"]);
        assert_eq!(path(r"page\.host"), ["page.host"]);
        assert_eq!(path(r"a\\.b"), [r"a\", "b"]);
    }

    #[test]
    fn nested_fields_leave_nested() {
        let names = ["ts", "user.id", "page.host", "user.country", "a\"b"];
        let paths: Vec<_> = names.map(path).into();
        let template = Template::new(&paths);
        let mut record = Vec::new();
        for (text, field) in &template.values {
            record.extend_from_slice(text.text());
            record.push(b'0' + *field as u8);
        }
        record.extend_from_slice(template.end.text());
        let wanted = r#"{"ts":0,"user":{"id":1,"country":3},"page":{"host":2},"a\"b":4"#;
        assert_eq!(String::from_utf8(record).unwrap(), wanted);
    }
}
