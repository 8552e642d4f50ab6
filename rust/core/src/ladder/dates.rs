//! Parts of a date: `2024-02-29T12:30:00Z` → `2024-02-29` → `2024-02` → `2024`.

use super::Labels;
use crate::error::Error;
use crate::text::TimeFormat;
use std::io::Write;

/// How much of a date is told, from the finest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DatePart {
    Minute,
    Hour,
    Day,
    Month,
    Year,
}

impl DatePart {
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "minute" => DatePart::Minute,
            "hour" => DatePart::Hour,
            "day" => DatePart::Day,
            "month" => DatePart::Month,
            "year" => DatePart::Year,
            _ => return None,
        })
    }
}

/// Dates and times in UTC, told up to some part.
#[derive(Debug)]
pub struct Dates {
    parts: Vec<DatePart>,
    /// What numbers are; each by itself, if not stated.
    format: Option<TimeFormat>,
}

const MINUTE_NS: i64 = 60_000_000_000;
const MINUTES_A_DAY: i64 = 24 * 60;

impl Dates {
    pub fn new(parts: Vec<DatePart>, format: Option<TimeFormat>) -> Result<Self, Error> {
        if parts.is_empty() || parts.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(Error::Setting {
                parameter: "time",
                rule: "expected minute, hour, day, month, year or some of them, in this order"
                    .to_owned(),
                got: format!("{parts:?}").to_lowercase(),
            });
        }
        Ok(Self { parts, format })
    }

    pub(super) fn levels(&self) -> usize {
        self.parts.len()
    }

    pub(super) fn climb(&self, text: &[u8], labels: &mut Labels) {
        // A date says so itself, whatever numbers are.
        let detected = TimeFormat::detect(text);
        let format = self.format.filter(|_| detected != Some(TimeFormat::Iso)).or(detected);
        let Some(time) = format.and_then(|format| format.parse(text)) else {
            return labels.miss(self.levels());
        };
        let minutes = time.div_euclid(MINUTE_NS);
        let (year, month, day) = civil(minutes.div_euclid(MINUTES_A_DAY));
        let minute = minutes.rem_euclid(MINUTES_A_DAY);
        let (hour, minute) = (minute / 60, minute % 60);
        for part in &self.parts {
            // Writing to memory does not fail.
            labels.write(|text| {
                _ = match part {
                    DatePart::Year => write!(text, "{year:04}"),
                    DatePart::Month => write!(text, "{year:04}-{month:02}"),
                    DatePart::Day => write!(text, "{year:04}-{month:02}-{day:02}"),
                    DatePart::Hour => write!(text, "{year:04}-{month:02}-{day:02}T{hour:02}"),
                    DatePart::Minute => {
                        write!(text, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}")
                    }
                };
            });
        }
    }
}

/// Year, month and day of a number of days since 1970, in the Gregorian calendar.
///
/// Years are counted from the first of March, so that the leap day is the last of one; four hundred of
/// them have always as many days.
fn civil(days: i64) -> (i64, i64, i64) {
    const CYCLE: i64 = 146_097;
    // From the first of March of the year 0 on.
    let days = days + 719_468;
    let (cycle, day) = (days.div_euclid(CYCLE), days.rem_euclid(CYCLE));
    let year = (day - day / 1_460 + day / 36_524 - day / (CYCLE - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months of 30.6 days from March on.
    let from_march = (5 * day + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = cycle * 400 + year + i64::from(month <= 2);
    (year, month, day - (153 * from_march + 2) / 5 + 1)
}
