use super::*;
use proptest::prelude::*;

const NUMBERS: [(TimeFormat, u32); 4] = [
    (TimeFormat::Seconds, 9),
    (TimeFormat::Millis, 6),
    (TimeFormat::Micros, 3),
    (TimeFormat::Nanos, 0),
];

#[test]
fn numbers_are_read_as_decimals() {
    use TimeFormat::{Micros, Millis, Nanos, Seconds};
    for (format, text, nanos) in [
        (Seconds, "1700000000.123", 1_700_000_000_123_000_000),
        (Seconds, "1700000000", 1_700_000_000_000_000_000),
        (Seconds, "1700000000.123456789", 1_700_000_000_123_456_789),
        (Seconds, "1700000000.1234567899", 1_700_000_000_123_456_789),
        (Seconds, "0.1", 100_000_000),
        (Seconds, "+1.5", 1_500_000_000),
        (Seconds, "-0", 0),
        (Seconds, "-0.0000000001", -1),
        (Seconds, "-1.0000000005", -1_000_000_001),
        (Seconds, "1.7e9", 1_700_000_000_000_000_000),
        (Seconds, "17E+8", 1_700_000_000_000_000_000),
        (Seconds, "0.0000000017e18", 1_700_000_000_000_000_000),
        (Seconds, "1e-9", 1),
        (Seconds, "9e-10", 0),
        (Seconds, "0e99999999999999999999", 0),
        (Seconds, "1e-99999999999999999999", 0),
        (Seconds, "-1e-99999999999999999999", -1),
        (Seconds, "9223372036.854775807", i64::MAX),
        (Seconds, "-9223372036.854775807", -i64::MAX),
        (Millis, "1700000000123", 1_700_000_000_123_000_000),
        (Millis, "1700000000123.5", 1_700_000_000_123_500_000),
        (Micros, "1700000000123456", 1_700_000_000_123_456_000),
        (Nanos, "1700000000123456789", 1_700_000_000_123_456_789),
        (Nanos, "1700000000123456789.9", 1_700_000_000_123_456_789),
        (Nanos, "00000000000000000000000007", 7),
        (Nanos, "9223372036854775807", i64::MAX),
    ] {
        assert_eq!(format.parse(text.as_bytes()), Some(nanos), "{text}");
    }
    for text in [
        "",
        "-",
        "+",
        ".",
        "1.",
        ".5",
        "1e",
        "1e+",
        "e5",
        "1.5.5",
        "0x10",
        "1_000",
        " 1",
        "1 ",
        "1,5",
        "NaN",
        "inf",
        "--1",
        "1700000000.12x",
        "17000000x0",
        "12345678.",
        "\"1\"",
        "1e5.5",
        "²",
        "9223372036.854775808",
        "-9223372036.854775808",
        "9223372037",
        "1e99999999999999999999",
        "99999999999999999999",
    ] {
        assert_eq!(TimeFormat::Seconds.parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn dates_are_read() {
    let second = 1_709_209_845; // 2024-02-29 12:30:45
    for (text, seconds, nanos) in [
        ("1970-01-01", 0, 0),
        ("1969-12-31T23:59:59.999999999Z", -1, 999_999_999),
        ("2024-02-29", 1_709_164_800, 0),
        ("2024-02-29T12:30", second - 45, 0),
        ("2024-02-29T12:30Z", second - 45, 0),
        ("2024-02-29T12:30:45", second, 0),
        ("2024-02-29 12:30:45Z", second, 0),
        ("2024-02-29T12:30:45.5Z", second, 500_000_000),
        ("2024-02-29T12:30:45,123456789Z", second, 123_456_789),
        ("2024-02-29T12:30:45.1234567899Z", second, 123_456_789),
        ("2024-02-29T13:30:45+01:00", second, 0),
        ("2024-02-29T13:30:45+0100", second, 0),
        ("2024-02-29T13:30:45.0+01", second, 0),
        ("2024-02-29T07:00:45-05:30", second, 0),
        ("2024-03-01T12:00:45+23:30", second, 0),
        ("2000-02-29", 951_782_400, 0),
    ] {
        let expected = seconds * 1_000_000_000 + nanos;
        assert_eq!(TimeFormat::Iso.parse(text.as_bytes()), Some(expected), "{text}");
    }
    for text in [
        "",
        "2024",
        "2024-02",
        "2023-02-29",
        "1900-02-29",
        "2024-00-01",
        "2024-13-01",
        "2024-04-31",
        "2024-01-00",
        "2024-1-1",
        "20240229",
        "2024-02-29T",
        "2024-02-29T12",
        "2024-02-29T24:00:00",
        "2024-02-29T12:60",
        "2024-02-29T12:30:60",
        "2024-02-29T12:30:45.",
        "2024-02-29T12:30.5",
        "2024-02-29t12:30",
        "2024-02-29T12:30z",
        "2024-02-29Z",
        "2024-02-29+01:00",
        "2024-02-29T12:30+1",
        "2024-02-29T12:30+24:00",
        "2024-02-29T12:30+01:60",
        "2024-02-29T12:30+01:00x",
        "2024-02-29T12:30:4",
        "2024-02-29T1230",
        " 2024-02-29",
        "1677-01-01",
        "2262-12-31",
        "0000-01-01",
        "9999-12-31",
        "2024-02-29T12:30:45.1x",
    ] {
        assert_eq!(TimeFormat::Iso.parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn the_calendar_goes_day_by_day() {
    let mut expected = days(1600, 1, 1).unwrap();
    assert_eq!(days(1970, 1, 1), Some(0));
    for year in 1600..2400 {
        for month in 1..=12 {
            for day in 1..=31 {
                if let Some(days) = days(year, month, day) {
                    assert_eq!(days, expected, "{year}-{month}-{day}");
                    expected += 1;
                }
            }
        }
    }
    // Two whole cycles of the Gregorian calendar.
    assert_eq!(expected - days(1600, 1, 1).unwrap(), 2 * 146_097);
}

#[test]
fn formats_are_told_apart() {
    for (text, format) in [
        ("1700000000", Some(TimeFormat::Seconds)),
        ("1700000000.123", Some(TimeFormat::Seconds)),
        ("-1", Some(TimeFormat::Seconds)),
        ("0", Some(TimeFormat::Seconds)),
        ("99999999999.9", Some(TimeFormat::Seconds)),
        ("100000000000", Some(TimeFormat::Millis)),
        ("1e11", Some(TimeFormat::Millis)),
        ("-1700000000123", Some(TimeFormat::Millis)),
        ("00001700000000123", Some(TimeFormat::Millis)),
        ("1700000000123456", Some(TimeFormat::Micros)),
        ("1700000000123456789", Some(TimeFormat::Nanos)),
        ("1.7e18", Some(TimeFormat::Nanos)),
        ("2024-02-29T12:00:00Z", Some(TimeFormat::Iso)),
        ("2024-02-29", Some(TimeFormat::Iso)),
        ("2024-0x-29", None),
        ("2024-02", None),
        ("yesterday", None),
        ("", None),
    ] {
        assert_eq!(TimeFormat::detect(text.as_bytes()), format, "{text}");
        if let Some(format) = format {
            assert_eq!(TimeFormat::from_name(format.name()), Some(format));
        }
    }
    assert_eq!(TimeFormat::from_name("minutes"), None);
}

proptest! {
    #[test]
    fn nanoseconds_written_in_any_unit_are_read_again(nanos in -i64::MAX.., shift in 0..20_usize) {
        for (format, power) in NUMBERS {
            let unit = 10_u64.pow(power);
            let (whole, part) = (nanos.unsigned_abs() / unit, nanos.unsigned_abs() % unit);
            let sign = if nanos < 0 { "-" } else { "" };
            let width = power as usize;
            let decimals = if power == 0 { String::new() } else { format!(".{part:0width$}") };
            let text = format!("{sign}{whole}{decimals}");
            prop_assert_eq!(format.parse(text.as_bytes()), Some(nanos), "{}", text);
            // The point moved, and an exponent that moves it back.
            let digits = format!("{:030}", nanos.unsigned_abs());
            let at = digits.len() - shift;
            let dot = if shift > 0 { "." } else { "" };
            let exponent = shift as i64 - i64::from(power);
            let text = format!("{sign}{}{dot}{}e{exponent}", &digits[..at], &digits[at..]);
            prop_assert_eq!(format.parse(text.as_bytes()), Some(nanos), "{}", text);
        }
    }

    #[test]
    fn shorter_and_longer_ways_are_equal(
        text in "[0-9]{1,20}(\\.[0-9]{0,10})?|[0-9]{7,12}[.:/e-][0-9]{1,4}[.x]?",
        power in 0..10_u32,
    ) {
        let text = text.as_bytes();
        let longest = Decimal::read(text).and_then(|number| number.floor(power));
        for shorter in [short_number(text, power), medium_number(text, power)] {
            prop_assert!(shorter.is_none() || shorter == longest);
        }
    }

    #[test]
    fn anything_else_is_refused_without_a_panic(
        bytes: Vec<u8>, text in "[0-9T:Z.,eE+ -]{0,30}", near in "2024-02-29T1[0-9]:[0-9Z+]{1,9}",
    ) {
        for text in [&bytes, text.as_bytes(), near.as_bytes()] {
            TimeFormat::detect(text);
            for (format, _) in NUMBERS {
                prop_assert_ne!(format.parse(text), Some(i64::MIN));
            }
            TimeFormat::Iso.parse(text);
        }
    }
}
