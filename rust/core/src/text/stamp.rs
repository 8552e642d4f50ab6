//! Times that leave rounded: the beginning of their minute, hour or day in UTC, told as they came in.

use super::time::TimeFormat;
use std::io::Write;

const DAY_NS: i64 = 86_400_000_000_000;

/// The step of time that leaves, in nanoseconds: whole seconds, of which a day is a multiple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step(i64);

impl Step {
    /// `None` for a step that is not of whole seconds, or that days are not made of.
    pub fn new(nanos: i64) -> Option<Self> {
        let is_whole = nanos > 0 && nanos % 1_000_000_000 == 0 && DAY_NS % nanos == 0;
        is_whole.then_some(Self(nanos))
    }

    /// The beginning of the step that a time lies in; `None` where there is no time, or none that
    /// could be told.
    pub(crate) fn floor(self, nanos: i64) -> Option<i64> {
        let floor = nanos.checked_sub(nanos.rem_euclid(self.0))?;
        (nanos != i64::MIN).then_some(floor)
    }
}

/// Writes a time of whole seconds, as a number of its unit or as ISO 8601 in UTC.
pub(crate) fn write(format: TimeFormat, nanos: i64, out: &mut Vec<u8>) {
    let unit = match format {
        TimeFormat::Seconds => 1_000_000_000,
        TimeFormat::Millis => 1_000_000,
        TimeFormat::Micros => 1_000,
        TimeFormat::Nanos => 1,
        TimeFormat::Iso => return write_iso(nanos, out),
    };
    // Writing to memory does not fail.
    _ = write!(out, "{}", nanos / unit);
}

fn write_iso(nanos: i64, out: &mut Vec<u8>) {
    let (year, month, day) = date(nanos.div_euclid(DAY_NS));
    let second = nanos.rem_euclid(DAY_NS) / 1_000_000_000;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    _ = write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
}

/// Year, month and day of a day since 1970. Years begin in March, so that the day that some have
/// more is their last; 400 of them have a fixed number of days.
pub(super) fn date(day: i64) -> (i64, i64, i64) {
    const DAYS_OF_400: i64 = 146_097;
    const DAYS_OF_100: i64 = 36_524;
    const DAYS_OF_4: i64 = 1_461;
    // Counted from 1 March of the year 0.
    let day = day + 719_468;
    let (era, day) = (day.div_euclid(DAYS_OF_400), day.rem_euclid(DAYS_OF_400));
    let leaps = day / (DAYS_OF_4 - 1) - day / DAYS_OF_100 + day / (DAYS_OF_400 - 1);
    let year = (day - leaps) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(format: TimeFormat, nanos: i64) -> String {
        let mut out = Vec::new();
        write(format, nanos, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_day_is_read_as_it_is_told() {
        // The first and the last day that 64 bits of nanoseconds have whole.
        for day in -106_751..106_751 {
            let nanos = day * DAY_NS;
            assert_eq!(TimeFormat::Iso.parse(told(TimeFormat::Iso, nanos).as_bytes()), Some(nanos));
        }
    }

    #[test]
    fn the_beginning_of_the_step() {
        let hour = Step::new(3_600_000_000_000).unwrap();
        let floor = hour.floor(1_700_000_000_123_456_789).unwrap();
        assert_eq!(told(TimeFormat::Seconds, floor), "1699999200");
        assert_eq!(told(TimeFormat::Millis, floor), "1699999200000");
        assert_eq!(told(TimeFormat::Nanos, floor), "1699999200000000000");
        assert_eq!(told(TimeFormat::Iso, floor), "2023-11-14T22:00:00Z");
        assert_eq!(hour.floor(-1), Some(-3_600_000_000_000));
        assert_eq!(hour.floor(floor), Some(floor));
        assert_eq!(hour.floor(i64::MIN), None);
        assert_eq!(hour.floor(i64::MIN + 1), None, "its hour began before all times");
    }

    #[test]
    fn steps_that_days_are_made_of() {
        assert!(Step::new(DAY_NS).is_some());
        for wrong in [0, -1, 1, 500_000_000, 7_000_000_000, 2 * DAY_NS] {
            assert_eq!(Step::new(wrong), None);
        }
    }
}
