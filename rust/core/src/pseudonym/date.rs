//! A moment as people read it.

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// Nanoseconds since 1970 as a date and time of UTC, to the second.
pub(super) fn date(time: i64) -> String {
    let seconds = time.div_euclid(SECOND);
    let (year, month, day) = civil(seconds.div_euclid(DAY));
    let rest = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date of a day since 1970, month by month: the range is a few centuries.
fn civil(mut day: i64) -> (i64, i64, i64) {
    let mut year = 1970;
    while day < 0 {
        year -= 1;
        day += days_of(year);
    }
    while day >= days_of(year) {
        day -= days_of(year);
        year += 1;
    }
    let february = days_of(year) - 337;
    for (month, days) in
        [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter().enumerate()
    {
        if day < days {
            return (year, month as i64 + 1, day + 1);
        }
        day -= days;
    }
    (year, 12, 31)
}

fn days_of(year: i64) -> i64 {
    let leaps = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
    365 + i64::from(leaps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::TimeFormat;
    use proptest::prelude::*;

    #[test]
    fn known_moments() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(-1), "1969-12-31T23:59:59Z");
        assert_eq!(date(951_782_400 * SECOND), "2000-02-29T00:00:00Z");
        assert_eq!(date(i64::MAX), "2262-04-11T23:47:16Z");
    }

    proptest! {
        #[test]
        fn it_reads_back(seconds in -9_000_000_000_i64..9_000_000_000) {
            let read = TimeFormat::from_name("iso").unwrap().parse(date(seconds * SECOND).as_bytes());
            prop_assert_eq!(read, Some(seconds * SECOND));
        }
    }
}
