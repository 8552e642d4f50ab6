//! The first line of a CSV file: which column is which.

use super::csv::{CsvScanner, CsvStep, unquote_csv};
use super::problem::Problem;

/// As much as was read before the records.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes read: empty lines, and the header if it is there.
    pub(crate) end: usize,
    pub(crate) lines: u64,
    /// `None` while the line is not complete.
    pub(crate) names: Option<Vec<String>>,
}

impl Header {
    /// Reads the header from the beginning of a file, behind any empty lines.
    pub(crate) fn read(
        text: &[u8],
        last: bool,
        delimiter: u8,
        max_line: usize,
    ) -> Result<Self, Problem> {
        let mut scanner = CsvScanner::new(delimiter);
        let mut cells = Vec::new();
        let mut header = Self::default();
        loop {
            let text = &text[header.end..];
            let end = match scanner.scan(text, last, max_line, &mut cells) {
                CsvStep::Record { end } => end,
                CsvStep::Blank { end } => {
                    header.end += end;
                    header.lines += 1;
                    continue;
                }
                CsvStep::Incomplete => return Ok(header),
                CsvStep::Bad { problem, .. } => return Err(problem),
            };
            let mut names = Vec::with_capacity(cells.len());
            for cell in &cells {
                let mut name = Vec::new();
                unquote_csv(cell.of(text), &mut name);
                let name = String::from_utf8(name).map_err(|_| Problem::NotUtf8)?;
                names.push(name.trim().to_owned());
            }
            header.lines += memchr::memchr_iter(b'\n', &text[..end]).count().max(1) as u64;
            header.end += end;
            header.names = Some(names);
            return Ok(header);
        }
    }
}

/// The column of each field. The first `needed` must be there, and no field twice; the column that is
/// not so is the error.
pub(crate) fn columns_of<'a>(
    fields: &'a [String],
    needed: usize,
    names: &[String],
) -> Result<Vec<Option<usize>>, &'a String> {
    let column = |(number, field): (usize, &'a String)| {
        let mut places = (0..names.len()).filter(|place| names[*place] == *field);
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(Some(place)),
            (None, _) if number >= needed => Ok(None),
            _ => Err(field),
        }
    };
    fields.iter().enumerate().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, last: bool) -> Header {
        Header::read(text.as_bytes(), last, b',', 100).unwrap()
    }

    #[test]
    fn empty_lines_before_it_are_read_once_and_for_all() {
        let header = read("\n\r\n\na,\"b,c\"\n1,2\n", false);
        assert_eq!((header.end, header.lines), (12, 4));
        assert_eq!(header.names, Some(vec!["a".to_owned(), "b,c".to_owned()]));
        let many = "\n".repeat(2_000_000);
        assert_eq!(read(&many, false), Header { end: 2_000_000, lines: 2_000_000, names: None });
        assert_eq!(read("\n\nts,u", false), Header { end: 2, lines: 2, names: None });
        assert_eq!(read("\nts", true).names, Some(vec!["ts".to_owned()]));
    }

    #[test]
    fn a_column_is_there_once_or_it_is_told() {
        let fields = ["a", "b", "rest"].map(str::to_owned);
        let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(columns_of(&fields, 2, &names("b,a")), Ok(vec![Some(1), Some(0), None]));
        assert_eq!(columns_of(&fields, 2, &names("a,x")), Err(&fields[1]));
        assert_eq!(columns_of(&fields, 2, &names("a,b,a")), Err(&fields[0]));
        assert_eq!(columns_of(&fields, 2, &names("a,b,rest,rest")), Err(&fields[2]));
    }
}
