//! Times: nothing panics, and what is written is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zveil_core::text::TimeFormat;

const NANOS: i64 = 1_000_000_000;

/// The date of a day since 1970, found by going through the years and months.
fn date(mut day: i64) -> String {
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while day < 0 {
        year -= 1;
        day += 365 + i64::from(is_leap(year));
    }
    while day >= 365 + i64::from(is_leap(year)) {
        day -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + i64::from(is_leap(year));
    for (month, days) in (1..).zip([31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
        if day < days {
            return format!("{year:04}-{month:02}-{:02}", day + 1);
        }
        day -= days;
    }
    unreachable!("more than 365 days in a year")
}

fn check(nanos: i64) {
    use TimeFormat::{Micros, Millis, Nanos, Seconds};
    for (format, digits) in [(Seconds, 9), (Millis, 6), (Micros, 3), (Nanos, 0)] {
        let sign = if nanos < 0 { "-" } else { "" };
        let (size, unit) = (nanos.unsigned_abs(), 10_u64.pow(digits));
        let mut text = format!("{sign}{}", size / unit);
        if digits > 0 {
            text += &format!(".{:0width$}", size % unit, width = digits as usize);
        }
        assert_eq!(format.parse(text.as_bytes()), Some(nanos), "{text}");
        text += "7";
        if digits > 0 {
            assert_eq!(format.parse(text.as_bytes()), Some(nanos - i64::from(nanos < 0)), "{text}");
        }
    }
    let (second, part) = (nanos.div_euclid(NANOS), nanos.rem_euclid(NANOS));
    let (day, clock) = (second.div_euclid(86_400), second.rem_euclid(86_400));
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    let text = format!("{}T{hour:02}:{minute:02}:{second:02}.{part:09}Z", date(day));
    assert_eq!(TimeFormat::Iso.parse(text.as_bytes()), Some(nanos), "{text}");
    assert_eq!(TimeFormat::detect(text.as_bytes()), Some(TimeFormat::Iso));
}

fuzz_target!(|data: &[u8]| {
    if let Some(number) = data.first_chunk() {
        let nanos = i64::from_le_bytes(*number);
        // The last of these is never a time, and one less would not be either.
        if nanos > i64::MIN + 1 {
            check(nanos);
        }
    }
    let format = TimeFormat::detect(data);
    for name in ["s", "ms", "us", "ns", "iso"] {
        let each = TimeFormat::from_name(name).unwrap();
        if let Some(nanos) = each.parse(data) {
            assert_ne!(nanos, i64::MIN);
            // What can be read as something is seen to be a number, or a date.
            assert_eq!(format == Some(TimeFormat::Iso), each == TimeFormat::Iso);
        }
    }
});
