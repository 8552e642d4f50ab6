use super::*;
use crate::column::{Column, Value};
use crate::settings::Rule;
use crate::{NoiseSettings, Settings, VEILED};
use proptest::prelude::*;

fn secret() -> Secret {
    Secret::new([5; 32])
}

fn plan<'a>(path: &'a Path, secret: &'a Secret, parts: &'a [&'a dyn Part]) -> Plan<'a> {
    Plan { path, secret, note: b"note", parts, sync: &[], keep: &[], wait: true }
}

fn plain(parts: &[&dyn Part]) -> Vec<u8> {
    let mut out = Vec::new();
    out.text(b"note").unwrap();
    for part in parts {
        out.number(part.tag()).unwrap();
        part.write(&mut Pen(&mut out)).unwrap();
    }
    out.number(END).unwrap();
    out
}

fn gate_of(parts: Vec<Loaded>) -> Gate {
    match parts.into_iter().next() {
        Some(Loaded::Gate(gate)) => *gate,
        _ => panic!("a gate"),
    }
}

/// Observations with few and many attributes, ties, disorder and jumps.
fn stream() -> impl Strategy<Value = Vec<(i64, i64, i64)>> {
    let one = (0_i64..60, 0_i64..12, prop_oneof![0_i64..6, 0_i64..100_000], 0_u8..200);
    prop::collection::vec(one, 1..6000).prop_map(|steps| {
        let mut clock = 0;
        let row = |(back, user, attribute, step): (i64, i64, i64, u8)| {
            clock += match step {
                0 => 5_000,
                1..120 => 0,
                _ => i64::from(step) / 40,
            };
            (clock - back, user, attribute)
        };
        steps.into_iter().map(row).collect()
    })
}

struct Numbers(Vec<i64>);

impl Column for Numbers {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn value(&self, row: usize) -> Option<Value<'_>> {
        self.0.get(row).copied().map(Value::Integer)
    }
}

fn decide(gate: &mut Gate, rows: &[(i64, i64, i64)], has_levels: bool, out: &mut Vec<i8>) {
    let times: Vec<i64> = rows.iter().map(|row| row.0).collect();
    let users = Numbers(rows.iter().map(|row| row.1).collect());
    let values = Numbers(rows.iter().map(|row| row.2).collect());
    let mut decisions = vec![VEILED; rows.len()];
    if has_levels {
        let coarse = Numbers(rows.iter().map(|row| row.2 % 3).collect());
        gate.observe_levels_many(&times, &users, &[&coarse, &values], &mut decisions).unwrap();
    } else {
        gate.observe_many(&times, &users, &values, &mut decisions).unwrap();
    }
    out.extend(decisions);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_gate_goes_on_as_if_nothing_had_been(
        rows in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        (z, more, window) in (1_usize..5, 0_usize..5, 0_i64..400),
        noise in prop::option::of((0_usize..3, prop::option::of(1_i64..200))),
        rule in prop_oneof![Just(Rule::FallThrough), Just(Rule::Authors), Just(Rule::Fixed(1))],
        (threads, has_levels, is_limited) in (1_usize..4, any::<bool>(), any::<bool>()),
        repeat in 1_usize..6,
    ) {
        let most = noise.map_or(0, |(most, _)| most);
        let settings = Settings {
            z_max: z + more + most,
            max_future: None,
            lateness: 50,
            rule,
            threads,
            memory_limit: is_limited.then_some(threads * (4 << 20)),
            noise: noise.map(|(most, period)| NoiseSettings { most, period }),
            ..Settings::new(z, window)
        };
        // Attributes of their own in each turn: so that the limit is reached.
        let rows: Vec<_> = (0..repeat as i64 * 8)
            .flat_map(|turn| {
                let end = rows.last().map_or(0, |row| row.0) / 8;
                rows.iter().map(move |(time, user, attribute)| {
                    let attribute = if *attribute < 6 { *attribute } else { attribute + turn * 100_000 };
                    (time / 8 + turn * end, *user, attribute)
                })
            })
            .collect();
        let mut whole = Gate::new(settings.clone(), secret()).unwrap();
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        decide(&mut whole, &rows, has_levels, &mut expected);
        let mut gate = Gate::new(settings, secret()).unwrap();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(rows.len())).collect();
        cuts.sort_unstable();
        let mut from = 0;
        for cut in cuts.into_iter().chain([rows.len()]) {
            decide(&mut gate, &rows[from..cut], has_levels, &mut found);
            from = cut;
            let body = plain(&[&gate]);
            let before = gate.stats();
            gate = gate_of(super::read(&body[..], threads).unwrap().1);
            prop_assert_eq!(gate.stats(), before);
            prop_assert_eq!(plain(&[&gate]) == body, true);
        }
        prop_assert_eq!(found == expected, true);
        prop_assert_eq!(gate.stats(), whole.stats());
        // On another number of threads it holds the same.
        let other = gate_of(super::read(&plain(&[&gate])[..], threads % 3 + 1).unwrap().1);
        if !is_limited {
            prop_assert_eq!(other.stats().attributes, gate.stats().attributes);
        }
    }
}

#[test]
fn the_limit_is_reached_in_the_test_above() {
    let settings = Settings {
        max_future: None,
        memory_limit: Some(4 << 20),
        ..Settings::new(2, 1_000_000)
    };
    let rows: Vec<_> = (0..300_000).map(|n| (n, n % 7, n * 7 % 200_000)).collect();
    let mut whole = Gate::new(settings.clone(), secret()).unwrap();
    let mut expected = Vec::new();
    decide(&mut whole, &rows, false, &mut expected);
    assert!(whole.stats().refused > 1000);
    let mut gate = Gate::new(settings, secret()).unwrap();
    let mut found = Vec::new();
    for part in rows.chunks(77_777) {
        decide(&mut gate, part, false, &mut found);
        gate = gate_of(read_plain_state(&plain(&[&gate])).unwrap().1);
    }
    assert!(found == expected);
    assert_eq!(gate.stats(), whole.stats());
}
