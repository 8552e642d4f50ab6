//! What can be wrong with a line.

/// What is wrong with a line of input. It names no part of the line: problems are shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Problem {
    /// The line ends inside of its record.
    CutOff,
    TooLong,
    NulByte,
    NotUtf8,
    Syntax,
    NotAnObject,
    DuplicateKey,
    TooDeep,
    MissingField,
    WrongType,
    WrongColumns,
    Time,
}

impl Problem {
    /// Every problem, in the order of their numbers.
    pub const ALL: [Problem; 12] = [
        Problem::CutOff,
        Problem::TooLong,
        Problem::NulByte,
        Problem::NotUtf8,
        Problem::Syntax,
        Problem::NotAnObject,
        Problem::DuplicateKey,
        Problem::TooDeep,
        Problem::MissingField,
        Problem::WrongType,
        Problem::WrongColumns,
        Problem::Time,
    ];

    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            Problem::CutOff => "cut-off",
            Problem::TooLong => "too-long",
            Problem::NulByte => "nul-byte",
            Problem::NotUtf8 => "not-utf8",
            Problem::Syntax => "syntax",
            Problem::NotAnObject => "not-an-object",
            Problem::DuplicateKey => "duplicate-key",
            Problem::TooDeep => "too-deep",
            Problem::MissingField => "missing-field",
            Problem::WrongType => "wrong-type",
            Problem::WrongColumns => "wrong-columns",
            Problem::Time => "time",
        }
    }

    /// For people, to follow "line 7: ".
    pub fn sentence(self) -> &'static str {
        match self {
            Problem::CutOff => "ends in the middle of a record",
            Problem::TooLong => "longer than a line may be",
            Problem::NulByte => "holds a NUL byte",
            Problem::NotUtf8 => "not valid UTF-8",
            Problem::Syntax => "not valid in its format",
            Problem::NotAnObject => "valid JSON, but not an object",
            Problem::DuplicateKey => "an object holds the same key twice",
            Problem::TooDeep => "nested too deeply",
            Problem::MissingField => "a field that is needed is missing",
            Problem::WrongType => "a field is of the wrong type",
            Problem::WrongColumns => "more or fewer columns than the header",
            Problem::Time => "the time cannot be read in the expected format",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_listed_at_its_number_with_a_name_of_its_own() {
        for (number, problem) in Problem::ALL.into_iter().enumerate() {
            assert_eq!(problem as usize, number);
            assert!(problem.name().bytes().all(|b| b.is_ascii_lowercase() || b"-8".contains(&b)));
            assert!(!problem.sentence().is_empty());
            assert!(Problem::ALL[..number].iter().all(|other| other.name() != problem.name()));
        }
    }
}
