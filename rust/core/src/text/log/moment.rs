//! Times as logs write them: `10/Oct/2000:13:55:36 -0700`, and `Oct 10 13:55:36` without a year.

use crate::text::TimeFormat;
use crate::text::stamp::date;
use crate::text::time::{days, two, zone};

const DAY: i64 = 86_400;
const NANOS: i64 = 1_000_000_000;
/// Two times of a log without years that are further apart cannot be told from two that are not.
const HALF_A_YEAR: i64 = 183 * DAY;

/// A time as far as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    Nanos(i64),
    Undated {
        month: i64,
        day: i64,
        second: i64,
    },
    /// None that can be read.
    Unclear,
}

/// A web server's: between the brackets.
pub(super) fn common(text: &[u8]) -> Option<i64> {
    let (date, rest) = text.split_first_chunk::<12>()?;
    let [d0, d1, b'/', m0, m1, m2, b'/', y0, y1, y2, y3, b':'] = *date else { return None };
    let (clock, rest) = rest.split_first_chunk::<9>()?;
    let [h0, h1, b':', n0, n1, b':', s0, s1, b' '] = *clock else { return None };
    let year = two([y0, y1])? * 100 + two([y2, y3])?;
    let day = days(year, month([m0, m1, m2])?, two([d0, d1])?)?;
    let second = clock_seconds([h0, h1, n0, n1, s0, s1])?;
    let offset = (rest.len() == 5).then(|| zone(rest))??;
    (day * DAY + second - offset).checked_mul(NANOS)
}

/// At the beginning of a line of syslog: the time, and what follows the space behind it.
pub(super) fn leading(line: &[u8]) -> Option<(Stamp, usize)> {
    if line.first()?.is_ascii_digit() {
        let end = memchr::memchr(b' ', line)?;
        let stamp = TimeFormat::Iso.parse(&line[..end]).map_or(Stamp::Unclear, Stamp::Nanos);
        return Some((stamp, end + 1));
    }
    let [m0, m1, m2, b' ', d0, d1, b' ', h0, h1, b':', n0, n1, b':', s0, s1, b' '] =
        *line.first_chunk()?
    else {
        return None;
    };
    let month = month([m0, m1, m2])?;
    let day = two([if d0 == b' ' { b'0' } else { d0 }, d1]);
    let stamp = match (day, clock_seconds([h0, h1, n0, n1, s0, s1])) {
        (Some(day), Some(second)) => Stamp::Undated { month, day, second },
        _ => Stamp::Unclear,
    };
    Some((stamp, 16))
}

fn month(name: [u8; 3]) -> Option<i64> {
    const MONTHS: [&[u8; 3]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    MONTHS.iter().position(|month| **month == name).map(|place| place as i64 + 1)
}

/// A leap second is taken for the one before it.
fn clock_seconds([h0, h1, n0, n1, s0, s1]: [u8; 6]) -> Option<i64> {
    let (hour, minute, second) = (two([h0, h1])?, two([n0, n1])?, two([s0, s1])?);
    let is_valid = hour < 24 && minute < 60 && second <= 60;
    is_valid.then_some(hour * 3600 + minute * 60 + second.min(59))
}

/// Finds the year of times that are written without one: that of the first line is found by when
/// the file was written, that of every other by the line before it, whose year is the nearest.
#[derive(Clone, Debug, Default)]
pub(super) struct Years {
    /// Seconds since 1970: no first time is later than this and a day.
    pub(super) latest: i64,
    stated: Option<i64>,
    /// The last time.
    pub(super) before: Option<i64>,
}

impl Years {
    /// A file after another goes on where that ended.
    pub(super) fn start_file(&mut self, latest: i64, stated: Option<i64>) {
        self.latest = latest.div_euclid(NANOS);
        self.stated = stated;
    }

    /// Nanoseconds since 1970; `None` if it is no time, or no year can be told.
    pub(super) fn settle(&mut self, stamp: Stamp) -> Option<i64> {
        let second = match stamp {
            Stamp::Nanos(nanos) => {
                self.before = Some(nanos.div_euclid(NANOS));
                return Some(nanos);
            }
            Stamp::Undated { month, day, second } => {
                let at = |year: i64| Some(days(year, month, day)? * DAY + second);
                match (self.before, self.stated) {
                    (Some(before), _) => {
                        let year = year_of(before);
                        let near = (year - 1..=year + 1).filter_map(at);
                        let nearest = near.min_by_key(|time| (time - before).abs());
                        nearest.filter(|time| (time - before).abs() <= HALF_A_YEAR)?
                    }
                    (None, Some(year)) => at(year)?,
                    (None, None) => {
                        // Eight years back there was a 29 February.
                        let year = year_of(self.latest + DAY);
                        let mut back = (year - 8..=year).rev().filter_map(at);
                        back.find(|time| *time <= self.latest + DAY)?
                    }
                }
            }
            Stamp::Unclear => return None,
        };
        self.before = Some(second);
        second.checked_mul(NANOS)
    }
}

/// The year of a moment.
fn year_of(second: i64) -> i64 {
    date(second.div_euclid(DAY)).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_servers_time_has_a_zone() {
        assert_eq!(common(b"10/Oct/2000:13:55:36 -0700"), Some(971_211_336 * NANOS));
        assert_eq!(common(b"29/Feb/2024:00:00:00 +0000"), Some(1_709_164_800 * NANOS));
        for text in [
            "29/Feb/2023:00:00:00 +0000",
            "10/Oct/2000:24:00:00 +0000",
            "10/oct/2000:13:55:36 +0000",
            "10/Oct/2000:13:55:36",
            "10/Oct/2000:13:55:36 +00",
            "1/Oct/2000:13:55:36 +0000",
            "-",
            "",
        ] {
            assert_eq!(common(text.as_bytes()), None, "{text}");
        }
    }

    fn undated(month: i64, day: i64) -> Stamp {
        Stamp::Undated { month, day, second: 3600 }
    }

    fn at(year: i64, month: i64, day: i64) -> Option<i64> {
        Some((days(year, month, day).unwrap() * DAY + 3600) * NANOS)
    }

    #[test]
    fn years_go_on_over_new_year_and_back_for_a_late_line() {
        let mut years = Years::default();
        years.start_file(at(2024, 1, 10).unwrap(), None);
        assert_eq!(years.settle(undated(12, 30)), at(2023, 12, 30));
        assert_eq!(years.settle(undated(1, 1)), at(2024, 1, 1));
        assert_eq!(years.settle(undated(12, 31)), at(2023, 12, 31));
        assert_eq!(years.settle(undated(1, 2)), at(2024, 1, 2));
        // A line that tells its year is believed.
        assert_eq!(years.settle(Stamp::Nanos(at(2026, 3, 1).unwrap())), at(2026, 3, 1));
        assert_eq!(years.settle(undated(3, 2)), at(2026, 3, 2));
        assert_eq!(years.settle(Stamp::Unclear), None);
    }

    #[test]
    fn the_first_year_is_that_of_the_file_or_the_stated_one() {
        let first = |month, day, stated| {
            let mut years = Years::default();
            years.start_file(at(2023, 3, 1).unwrap(), stated);
            years.settle(undated(month, day))
        };
        assert_eq!(first(3, 2, None), at(2023, 3, 2));
        assert_eq!(first(3, 3, None), at(2022, 3, 3));
        assert_eq!(first(2, 29, None), at(2020, 2, 29));
        assert_eq!(first(3, 3, Some(2021)), at(2021, 3, 3));
        assert_eq!(first(2, 29, Some(2021)), None);
        assert_eq!(first(2, 30, None), None);
    }
}
