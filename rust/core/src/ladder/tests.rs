//! What each step makes of values, and what holds for all of them.

use super::*;
use crate::text::TimeFormat;
use proptest::prelude::*;

const LIST: &str = "// a list\ncom\norg\nuk\nco.uk\n*.ck\n!www.ck\n\u{516c}\u{53f8}.cn\ncn\n\
    *.kawasaki.jp\n!city.kawasaki.jp\njp\n\
    // ===BEGIN PRIVATE DOMAINS===\ngithub.io\nio\n";

fn climbed(ladder: &Ladder, value: Value) -> Vec<Option<String>> {
    let (mut text, mut places) = (b"before".to_vec(), Vec::new());
    ladder.climb(Some(value), &mut Labels { text: &mut text, places: &mut places });
    read(&text, places)
}

fn read(text: &[u8], places: Vec<Place>) -> Vec<Option<String>> {
    let label = |place: Place| Some(String::from_utf8_lossy(&text[place?]).into_owned());
    places.into_iter().map(label).collect()
}

fn ladder(step: Step) -> Ladder {
    Ladder::new(vec![step]).unwrap()
}

/// The labels, joined; `-` for a missing one.
fn labels(ladder: &Ladder, value: Value) -> String {
    let found = climbed(ladder, value);
    let labels: Vec<_> = found.into_iter().map(|label| label.unwrap_or("-".to_owned())).collect();
    labels.join(" ")
}

fn text(ladder: &Ladder, value: &str) -> String {
    labels(ladder, Value::Text(value.as_bytes()))
}

#[test]
fn a_host_has_its_registered_domain() {
    let domain = ladder(Step::Domain(Suffixes::read(LIST, true)));
    for (host, wanted) in [
        ("www.example.org", "example.org"),
        ("WWW.Example.ORG.", "example.org"),
        ("example.org:443", "example.org"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("co.uk", "-"),
        ("org", "-"),
        ("localhost", "-"),
        ("a.b.ck", "a.b.ck"),
        ("b.ck", "-"),
        ("www.ck", "www.ck"),
        ("x.www.ck", "www.ck"),
        ("kawasaki.jp", "-"),
        ("x.city.kawasaki.jp", "city.kawasaki.jp"),
        ("a.b.c.kawasaki.jp", "b.c.kawasaki.jp"),
        ("ada.github.io", "ada.github.io"),
        ("some.where.unknown", "where.unknown"),
        ("www.\u{4f8b}\u{3048}.\u{516c}\u{53f8}.cn", "xn--r8jz45g.xn--55qx5d.cn"),
        ("www.xn--r8jz45g.xn--55qx5d.cn", "xn--r8jz45g.xn--55qx5d.cn"),
        ("M\u{dc}LLER.org", "xn--mller-kva.org"),
        ("a\u{3002}org", "a.org"),
        ("_dmarc.example.org", "example.org"),
        ("192.0.2.7", "-"),
        ("192.0.2.7:80", "-"),
        ("1.0x7f", "-"),
        ("2001:db8::1", "-"),
        ("[2001:db8::1]", "-"),
        ("a..org", "-"),
        (".example.org", "-"),
        ("", "-"),
        (".", "-"),
        ("a b.org", "-"),
        ("http://a.org/", "-"),
    ] {
        assert_eq!(text(&domain, host), wanted, "{host}");
    }
    let registry = ladder(Step::Domain(Suffixes::read(LIST, false)));
    assert_eq!(text(&registry, "www.ada.github.io"), "github.io");
}

#[test]
fn a_table_gives_parents_and_grandparents() {
    let csv = b"site,kind,group\nexample.org, news ,media\n\"a,b\",\"say \"\"so\"\"\",media\nx,\n\n7,few\n";
    let table = ladder(Step::Table(Table::read(csv).unwrap()));
    assert_eq!(text(&table, "example.org"), "news media");
    assert_eq!(text(&table, "a,b"), "say \"so\" media");
    assert_eq!(text(&table, "x"), "- -");
    assert_eq!(text(&table, "unknown"), "- -");
    assert_eq!(labels(&table, Value::Integer(7)), "few -");
}

#[test]
fn a_table_that_is_no_tree_is_refused_with_its_line() {
    for (csv, wanted) in [
        (&b"a,x\nb,x\na,y\n"[..], "line 3: a value has another parent on a line before"),
        (b"a,x,m\nb,x,n\n", "line 2: a label has another parent on a line before"),
        (b"a,x,m\nb,x\n", "line 2: a label has another parent on a line before"),
        (b"a,,m\n", "line 1: a label is missing below another"),
        (b"a\n", "line 1: no line has a value and its parent"),
        (b"", "line 1: no line has a value and its parent"),
        (b"a,\"b\n", "line 1: ends in the middle of a record"),
        (b"a,b\n\xFF,c\n", "line 2: it is not valid UTF-8"),
    ] {
        let words = Table::read(csv).unwrap_err().to_string();
        assert!(words.ends_with(wanted), "{words}");
    }
}

#[test]
fn paths_are_cut_from_the_root() {
    let path = ladder(Step::Segments(Segments::new("/", 2).unwrap()));
    assert_eq!(text(&path, "a/b/c/d"), "a/b a");
    assert_eq!(text(&path, "/a/b/c"), "/a/b /a");
    assert_eq!(text(&path, "/a//b/"), "/a/b /a");
    assert_eq!(text(&path, "a"), "a a");
    assert_eq!(text(&path, "//"), "/ /");
    assert_eq!(text(&path, ""), "- -");
    let stars = ladder(Step::Segments(Segments::new("*", 1).unwrap()));
    assert_eq!(text(&stars, "news*sport*football"), "news");
    let long = ladder(Step::Segments(Segments::new("::", 3).unwrap()));
    assert_eq!(text(&long, "a::b:c::d::e"), "a::b:c::d a::b:c a");
}

#[test]
fn bins_hold_their_lower_edge() {
    let bins = |widths: &[&str]| {
        let widths: Vec<_> = widths.iter().map(|width| (*width).to_owned()).collect();
        Bins::new(&widths).map(|bins| ladder(Step::Bins(bins)))
    };
    let tens = bins(&["10", "100"]).unwrap();
    assert_eq!(labels(&tens, Value::Integer(37)), "[30,40) [0,100)");
    assert_eq!(labels(&tens, Value::Integer(40)), "[40,50) [0,100)");
    assert_eq!(labels(&tens, Value::Integer(-1)), "[-10,0) [-100,0)");
    assert_eq!(labels(&tens, Value::Integer(-10)), "[-10,0) [-100,0)");
    assert_eq!(labels(&tens, Value::Float(-0.0)), "[0,10) [0,100)");
    assert_eq!(labels(&tens, Value::Float(99.999)), "[90,100) [0,100)");
    assert_eq!(labels(&tens, Value::Float(f64::NAN)), "- -");
    assert_eq!(labels(&tens, Value::Float(1e300)), "- -");
    assert_eq!(labels(&tens, Value::Bool(true)), "- -");
    assert_eq!(text(&tens, "1e2"), "[100,110) [100,200)");
    assert_eq!(text(&tens, "ten"), "- -");
    let tenths = bins(&["0.1", "0.5"]).unwrap();
    assert_eq!(labels(&tenths, Value::Float(0.3)), "[0.3,0.4) [0,0.5)");
    assert_eq!(labels(&tenths, Value::Float(-0.7)), "[-0.7,-0.6) [-1,-0.5)");
    for wrong in [&[][..], &["0"], &["-1"], &["x"], &["10", "25"], &["10", "10"], &["1e40"]] {
        assert!(bins(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn dates_are_told_up_to_a_part() {
    use DatePart::*;
    let all = Dates::new(vec![Minute, Hour, Day, Month, Year], None).unwrap();
    let all = ladder(Step::Dates(all));
    let wanted = "2024-02-29T11:30 2024-02-29T11 2024-02-29 2024-02 2024";
    assert_eq!(text(&all, "2024-02-29T12:30:59.9+01:00"), wanted);
    assert_eq!(labels(&all, Value::Integer(1_709_206_200)), wanted);
    assert_eq!(labels(&all, Value::Integer(1_709_206_200_000)), wanted);
    assert_eq!(text(&all, "1969-12-31"), "1969-12-31T00:00 1969-12-31T00 1969-12-31 1969-12 1969");
    assert_eq!(text(&all, "yesterday"), "- - - - -");
    let millis = Dates::new(vec![Year], Some(TimeFormat::Millis)).unwrap();
    let millis = ladder(Step::Dates(millis));
    assert_eq!(labels(&millis, Value::Integer(7)), "1970");
    assert_eq!(text(&millis, "2024-02-29 23:30:00.000000000"), "2024");
    assert!(Dates::new(vec![Year, Day], None).is_err());
    assert!(Dates::new(vec![], None).is_err());
}

#[test]
fn addresses_lie_in_networks() {
    let both = Prefixes::new(vec![24, 8, 0], vec![48, 32, 0]).unwrap();
    let both = ladder(Step::Prefixes(both));
    assert_eq!(text(&both, "192.0.2.7"), "192.0.2.0/24 192.0.0.0/8 0.0.0.0/0");
    assert_eq!(text(&both, "::ffff:192.0.2.7"), "192.0.2.0/24 192.0.0.0/8 0.0.0.0/0");
    assert_eq!(text(&both, "2001:DB8:1:2::3"), "2001:db8:1::/48 2001:db8::/32 ::/0");
    assert_eq!(text(&both, "fe80::1%eth0"), "fe80::/48 fe80::/32 ::/0");
    assert_eq!(text(&both, "192.0.2.0/24"), "- - -");
    assert_eq!(text(&both, "192.0.2.007"), "- - -");
    let one = ladder(Step::Prefixes(Prefixes::new(vec![16], vec![]).unwrap()));
    assert_eq!(text(&one, "2001:db8::1"), "-");
    for (v4, v6) in
        [(vec![], vec![]), (vec![33], vec![]), (vec![8, 16], vec![]), (vec![8], vec![4, 2])]
    {
        assert!(Prefixes::new(v4, v6).is_err());
    }
}

fn position(ladder: &Ladder, latitude: Value, longitude: Value) -> Vec<Option<String>> {
    let (mut text, mut places) = (Vec::new(), Vec::new());
    let mut labels = Labels { text: &mut text, places: &mut places };
    ladder.climb_position(Some(latitude), Some(longitude), &mut labels);
    read(&text, places)
}

#[test]
fn positions_lie_in_cells() {
    let cells = ladder(Step::Cells(Cells::new(&[9, 5]).unwrap()));
    assert_eq!((cells.labels(), cells.levels()), (2, 2));
    // As the other implementations of H3 have them.
    let wanted = [Some("8928308280fffff".to_owned()), Some("85283083fffffff".to_owned())];
    let (latitude, longitude) = (37.775_270_215_195_9, -122.418_307_270_836);
    assert_eq!(position(&cells, Value::Float(latitude), Value::Float(longitude)), wanted);
    let texts = [latitude.to_string(), longitude.to_string()];
    let [north, east] = texts.each_ref().map(|text| Value::Text(text.as_bytes()));
    assert_eq!(position(&cells, north, east), wanted);
    for (north, east) in [(90.1, 0.0), (0.0, 180.5), (f64::NAN, 0.0), (0.0, f64::INFINITY)] {
        assert_eq!(position(&cells, Value::Float(north), Value::Float(east)), [None, None]);
    }
    assert_eq!(position(&cells, Value::Text(b"inf"), Value::Text(b"0")), [None, None]);
    assert_eq!(climbed(&cells, Value::Text(b"1,2")), [None, None]);
    for wrong in [&[][..], &[16], &[5, 9], &[5, 5]] {
        assert!(Cells::new(wrong).is_err());
    }
}

#[test]
fn steps_go_on_from_the_last_label() {
    let host = Ladder::new(vec![
        Step::Domain(Suffixes::read(LIST, true)),
        Step::Table(Table::read(b"example.org,news\n").unwrap()),
    ]);
    let host = host.unwrap();
    assert_eq!((host.labels(), host.levels()), (2, 3));
    assert_eq!(text(&host, "www.Example.org"), "example.org news");
    assert_eq!(text(&host, "www.other.org"), "other.org -");
    assert_eq!(text(&host, "192.0.2.7"), "- -");
    assert!(Ladder::new(vec![]).is_err());
    let deep = Step::Segments(Segments::new("/", 32).unwrap());
    assert!(Ladder::new(vec![deep]).is_err());
    let late = vec![
        Step::Segments(Segments::new("/", 1).unwrap()),
        Step::Cells(Cells::new(&[5]).unwrap()),
    ];
    assert!(Ladder::new(late).is_err());
}

/// Each kind of step, twice: as the finer levels, and as those above them alone.
fn pairs() -> Vec<(Step, Step)> {
    use DatePart::*;
    let bins = |widths: [&str; 2]| Step::Bins(Bins::new(&widths.map(str::to_owned)).unwrap());
    let csv = b"0,a,b\n1,a,b\n2,c,b\n3,d\n";
    vec![
        (
            Step::Segments(Segments::new("/", 3).unwrap()),
            Step::Segments(Segments::new("/", 2).unwrap()),
        ),
        (bins(["0.5", "4"]), bins(["0.5", "4"])),
        (
            Step::Dates(Dates::new(vec![Minute, Day, Year], None).unwrap()),
            Step::Dates(Dates::new(vec![Day, Year], None).unwrap()),
        ),
        (
            Step::Prefixes(Prefixes::new(vec![24, 7], vec![64, 13]).unwrap()),
            Step::Prefixes(Prefixes::new(vec![24, 7], vec![64, 13]).unwrap()),
        ),
        (Step::Table(Table::read(csv).unwrap()), Step::Table(Table::read(csv).unwrap())),
        (Step::Domain(Suffixes::read(LIST, true)), Step::Domain(Suffixes::read(LIST, true))),
    ]
}

fn any_value() -> impl Strategy<Value = Vec<u8>> {
    let spelled = |pattern: &'static str| pattern.prop_map(String::into_bytes);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        spelled("/?([abc]{0,2}/){0,4}[abc]?"),
        spelled("-?[0-9]{1,20}(\\.[0-9]{1,9})?(e-?[0-9]{1,3})?"),
        spelled("(19|20)[0-9]{2}-0[1-9]-[0-2][0-9](T[01][0-9]:[0-5][0-9]:00Z)?"),
        any::<u32>().prop_map(|bits| std::net::Ipv4Addr::from_bits(bits).to_string().into()),
        any::<u128>().prop_map(|bits| std::net::Ipv6Addr::from_bits(bits).to_string().into()),
        spelled(
            "([a-cA-C\u{fc}]{0,3}[.\u{3002}]){0,4}(org|co\\.uk|ck|www\\.ck|kawasaki\\.jp|[0-9])\\.?"
        ),
    ]
}

proptest! {
    #[test]
    fn a_coarser_label_is_a_function_of_the_finer(
        values in prop::collection::vec(any_value(), 1..60),
    ) {
        for (step, _) in pairs() {
            let ladder = ladder(step);
            let mut above = std::collections::HashMap::new();
            for value in &values {
                let found = climbed(&ladder, Value::Text(value));
                prop_assert_eq!(found.len(), ladder.labels());
                for (level, pair) in found.windows(2).enumerate() {
                    // Nothing hangs in the air.
                    prop_assert!(pair[0].is_some() || pair[1].is_none());
                    let known = above.entry((level, pair[0].clone())).or_insert(pair[1].clone());
                    prop_assert_eq!(&*known, &pair[1]);
                }
            }
        }
    }

    #[test]
    fn a_label_of_a_path_date_or_name_is_its_own(value in any_value()) {
        // Labels of these can be climbed from again, and lead to where the value led.
        for (step, same) in pairs() {
            if !matches!(step, Step::Segments(_) | Step::Domain(_)) {
                continue;
            }
            let (first, again) = (ladder(step), ladder(same));
            let found = climbed(&first, Value::Text(&value));
            if let Some(Some(label)) = found.first() {
                let above = climbed(&again, Value::Text(label.as_bytes()));
                let wanted = &found[first.labels() - again.labels()..];
                prop_assert_eq!(&above[..], wanted);
            }
        }
    }

    #[test]
    fn numbers_lie_in_their_bins(number: i32, fraction in 0..1000_u32) {
        let bins = Bins::new(&["0.25".to_owned(), "10".to_owned()]).unwrap();
        let value = f64::from(number) + f64::from(fraction) / 1000.0;
        let found = climbed(&ladder(Step::Bins(bins)), Value::Float(value));
        for label in found {
            let label = label.unwrap();
            let edges: Vec<f64> = label[1..label.len() - 1]
                .split(',')
                .map(|edge| edge.parse().unwrap())
                .collect();
            prop_assert!(edges[0] <= value && value < edges[1], "{value} in {label}");
        }
    }

    #[test]
    fn coarser_cells_are_parents(north in -90.0..90.0_f64, east in -180.0..180.0_f64) {
        let all = ladder(Step::Cells(Cells::new(&[15, 9, 8, 0]).unwrap()));
        let found = position(&all, Value::Float(north), Value::Float(east));
        let cells: Vec<h3o::CellIndex> =
            found.iter().map(|label| label.as_ref().unwrap().parse().unwrap()).collect();
        for pair in cells.windows(2) {
            prop_assert_eq!(pair[0].parent(pair[1].resolution()), Some(pair[1]));
        }
    }

    #[test]
    fn tables_of_any_bytes_are_read_or_refused(csv in prop::collection::vec(
        prop_oneof![Just(b','), Just(b'\n'), Just(b'"'), Just(b'a'), any::<u8>()], 0..60,
    )) {
        if let Ok(table) = Table::read(&csv) {
            let table = ladder(Step::Table(table));
            prop_assert_eq!(climbed(&table, Value::Text(b"a")).len(), table.labels());
        }
    }
}

#[test]
fn many_values_climb_as_each_alone() {
    let rows: String = (0..300).map(|n| format!("site{n}.org,kind{},all\n", n % 7)).collect();
    let table = || Step::Table(Table::read(rows.as_bytes()).unwrap());
    let domain = || Step::Domain(Suffixes::read(LIST, true));
    let cut = || Step::Segments(Segments::new("d", 1).unwrap());
    let hosts: Vec<_> =
        (0..1_000).map(|n| format!("www{}.site{}.org", n % 3, n * n % 420)).collect();
    let domains: Vec<_> = (0..1_000).map(|n| format!("site{}.org", n * n % 420)).collect();
    for (steps, texts) in [
        (vec![domain(), table()], &hosts),
        (vec![domain(), table(), cut()], &hosts),
        (vec![table()], &domains),
        (vec![table(), cut()], &domains),
        (vec![domain()], &hosts),
    ] {
        let ladder = Ladder::new(steps).unwrap();
        // Some have no value, and some are no text.
        let value = |n: usize| match n % 50 {
            7 => None,
            9 => Some(Value::Integer(9)),
            _ => Some(Value::Text(texts[n].as_bytes())),
        };
        for count in [0, 1, 15, 16, 17, texts.len()] {
            let (mut text, mut places) = (b"before".to_vec(), vec![Some(0..6)]);
            let mut labels = Labels { text: &mut text, places: &mut places };
            ladder.climb_many((0..count).map(value), &mut labels);
            let found = read(&text, places);
            let (mut text, mut places) = (b"before".to_vec(), vec![Some(0..6)]);
            for n in 0..count {
                ladder.climb(value(n), &mut Labels { text: &mut text, places: &mut places });
            }
            assert_eq!(found, read(&text, places));
        }
    }
}

#[test]
fn a_table_holds_what_was_put_in() {
    let rows: String = (0..5_000).map(|n| format!("v{n},p{},{}\n", n / 10, n / 100)).collect();
    let ladder = ladder(Step::Table(Table::read(rows.as_bytes()).unwrap()));
    for n in 0..5_000 {
        assert_eq!(text(&ladder, &format!("v{n}")), format!("p{} {}", n / 10, n / 100));
        assert_eq!(text(&ladder, &format!("w{n}")), "- -");
    }
}
