use super::*;
use crate::column::{Column, Value};
use crate::deal::Deal;
use crate::settings::Rule;
use crate::{MeterSettings, NoiseSettings, Released, Settings, Stats, VEILED};
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

/// Every eighth observation is of one attribute, the others are of many.
fn uneven(rows: i64) -> Vec<(i64, i64, i64)> {
    let row = |row: i64| (row / 10, row * 7 % 50, if row % 8 == 0 { 7 } else { row * 31 % 3_000 });
    (0..rows).map(row).collect()
}

#[test]
fn a_gate_of_several_threads_that_was_dealt_out_goes_on() {
    let rows = uneven(60_000);
    let made = |threads| {
        let settings = Settings { threads, max_future: None, ..Settings::new(3, 500) };
        Gate::new(settings, secret()).unwrap()
    };
    let mut expected = Vec::new();
    decide(&mut made(1), &rows, false, &mut expected);
    for has_limit in [false, true] {
        let (mut gate, mut got) = (made(3), Vec::new());
        if has_limit {
            gate.limit_attributes(1 << 20);
        }
        decide(&mut gate, &rows[..30_000], false, &mut got);
        assert_eq!(gate.deal == Deal::even(3), has_limit);
        let mut gate = gate_of(super::read(&plain(&[&gate])[..], 3).unwrap().1);
        assert_eq!(gate.deal == Deal::even(3), has_limit);
        decide(&mut gate, &rows[30_000..], false, &mut got);
        assert!(got == expected && got.contains(&0) && got.contains(&VEILED));
    }
}

#[test]
fn who_refused_observations_keeps_its_attributes() {
    let settings = Settings { threads: 3, max_future: None, ..Settings::new(3, 500) };
    let mut gate = Gate::new(settings, secret()).unwrap();
    gate.shards[1].refused_clock = 7;
    decide(&mut gate, &uneven(30_000), false, &mut Vec::new());
    assert_eq!(gate.deal, Deal::even(3));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

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
        if gate.deal == whole.deal {
            prop_assert_eq!(gate.stats(), whole.stats());
        } else {
            // Dealt out otherwise, what counts no more is met by the hands at other moments.
            let held = Stats { attributes: 0, entries: 0, bytes: 0, ..whole.stats() };
            prop_assert_eq!(Stats { attributes: 0, entries: 0, bytes: 0, ..gate.stats() }, held);
        }
        // On another number of threads it holds the same.
        if !is_limited {
            let other = gate_of(super::read(&plain(&[&gate])[..], threads % 3 + 1).unwrap().1);
            prop_assert_eq!(other.stats().attributes, gate.stats().attributes);
        }
    }
}

#[test]
fn the_limit_is_reached_in_the_test_above() {
    let settings =
        Settings { max_future: None, memory_limit: Some(4 << 20), ..Settings::new(2, 1_000_000) };
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

fn some_parts() -> (Gate, EventIds) {
    let settings = Settings { max_future: None, ..Settings::new(2, 1_000) };
    let mut gate = Gate::new(settings, secret()).unwrap();
    let rows: Vec<_> = (0..5_000).map(|n| (n, n % 5, n % 700)).collect();
    decide(&mut gate, &rows, false, &mut Vec::new());
    let mut ids = EventIds::new(secret(), 1_000, 500, None).unwrap();
    (0..900).for_each(|n| _ = ids.is_fresh(n, Some(Value::Integer(n % 800))));
    (gate, ids)
}

#[test]
fn what_is_saved_loads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let ((gate, ids), secret) = (some_parts(), secret());
    let parts: [&dyn Part; 2] = [&gate, &ids];
    for wait in [true, false] {
        let _ = std::fs::remove_file(&path);
        let mut saving = save(&Plan { wait, ..plan(&path, &secret, &parts) }).unwrap();
        assert_eq!(saving.is_beside(), cfg!(unix) && !wait);
        saving.wait().unwrap();
        assert!(saving.is_over().unwrap());
        assert_eq!(read_note(&path, &secret).unwrap(), b"note");
        let (note, loaded) = load(&path, &secret, 1).unwrap();
        let [Loaded::Gate(other), Loaded::Ids(others)] = &loaded[..] else { panic!("two parts") };
        assert_eq!((note, other.stats()), (b"note".to_vec(), gate.stats()));
        assert_eq!((others.len(), others.repeated()), (ids.len(), ids.repeated()));
        assert!(plain(&[&**other, &**others]) == plain(&parts));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn it_is_that_of_the_moment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let (mut gate, _) = some_parts();
    let (before, secret) = (gate.stats(), secret());
    let saving = save(&Plan { wait: false, ..plan(&path, &secret, &[&gate]) });
    let rows: Vec<_> = (5_000..300_000).map(|n| (n, n % 5, n % 70_000)).collect();
    decide(&mut gate, &rows, false, &mut Vec::new());
    saving.unwrap().wait().unwrap();
    assert_eq!(gate_of(load(&path, &secret, 1).unwrap().1).stats(), before);
}

#[test]
fn a_failure_is_told_once_and_leaves_what_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let ((gate, _), secret) = (some_parts(), secret());
    save(&plan(&path, &secret, &[])).unwrap();
    let nowhere = folder.path().join("none").join("state");
    assert!(matches!(
        save(&plan(&nowhere, &secret, &[&gate])),
        Err(Error::Snapshot(SnapshotError::Io { step: "create", .. }))
    ));
    let mut saving = save(&Plan { wait: false, ..plan(&nowhere, &secret, &[&gate]) }).unwrap();
    let told = saving.wait().unwrap_err().to_string();
    assert!(told.contains("could not create the file: No such file"), "{told}");
    assert!(saving.is_over().unwrap());
    // A descriptor that is none.
    let parts: [&dyn Part; 1] = [&gate];
    let wrong = Plan { sync: &[987_654], ..plan(&path, &secret, &parts) };
    for wait in [true, false] {
        let outcome = save(&Plan { wait, ..wrong }).and_then(|mut saving| saving.wait());
        assert!(outcome.unwrap_err().to_string().contains("sync what belongs to"));
    }
    assert!(load(&path, &secret, 1).unwrap().1.is_empty());
}

#[test]
fn a_longer_note_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let (note, secret) = (vec![7; LONGEST_NOTE + 1], secret());
    assert!(save(&Plan { note: &note, ..plan(&path, &secret, &[]) }).is_err());
    let note = &note[1..];
    save(&Plan { note, ..plan(&path, &secret, &[]) }).unwrap();
    assert!(read_note(&path, &secret).unwrap() == note);
}

#[test]
fn others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let ((gate, ids), secret) = (some_parts(), secret());
    save(&plan(&path, &secret, &[&gate, &ids])).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let error = |bytes: &[u8], secret: &Secret| {
        std::fs::write(&path, bytes).unwrap();
        match load(&path, secret, 1) {
            Err(Error::Snapshot(error)) => error,
            _ => panic!("refused"),
        }
    };
    assert!(matches!(error(&whole, &Secret::new([6; 32])), SnapshotError::Key));
    assert!(matches!(error(b"{}", &secret), SnapshotError::Foreign));
    assert!(matches!(error(b"", &secret), SnapshotError::Foreign));
    let mut other = whole.clone();
    other[8] = 9;
    assert!(matches!(error(&other, &secret), SnapshotError::Version { found: 9, known: 2 }));
    let mut longer = whole.clone();
    longer.push(0);
    assert!(matches!(error(&longer, &secret), SnapshotError::Damaged));
    // A snapshot is no state, under the same secret too.
    gate.snapshot(&path, b"").unwrap();
    let snapshot = std::fs::read(&path).unwrap();
    assert!(matches!(error(&snapshot, &secret), SnapshotError::Foreign));
    for length in (37..whole.len()).step_by(997).chain([whole.len() - 1]) {
        assert!(matches!(error(&whole[..length], &secret), SnapshotError::Damaged), "{length}");
    }
    for place in (10..whole.len()).step_by(1499) {
        let mut altered = whole.clone();
        altered[place] ^= 1;
        let error = error(&altered, &secret);
        assert!(matches!(error, SnapshotError::Damaged | SnapshotError::Key), "{place}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_body_makes_the_reader_panic(
        rows in prop::collection::vec((0_i64..50, 0_i64..9, 0_i64..12), 1..60),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        junk in prop::collection::vec(any::<u8>(), 0..200),
        is_short in any::<bool>(),
    ) {
        let settings = Settings { max_future: None, ..Settings::new(2, 1_000) };
        let mut gate = Gate::new(settings, secret()).unwrap();
        decide(&mut gate, &rows, false, &mut Vec::new());
        let mut ids = EventIds::new(secret(), 1_000, 500, None).unwrap();
        rows.iter().for_each(|(time, _, id)| _ = ids.is_fresh(*time, Some(Value::Integer(*id))));
        let told = MeterSettings { rotate: Some(700), lateness: 500, memory_limit: None };
        let mut meter = Meter::new(told, secret()).unwrap();
        let times: Vec<i64> = rows.iter().map(|(time, ..)| *time).collect();
        let (users, values): (Vec<_>, Vec<_>) = rows.iter().map(|(_, user, a)| (*user, *a)).unzip();
        let field = meter.lens().field("a");
        let left = Released { field, values: &Numbers(values), rows: None };
        meter.add(&times, &Numbers(users), &[left]).unwrap();
        let mut body = plain(&[&gate, &ids, &meter]);
        for (place, byte) in places {
            let place = place.index(body.len());
            body[place] = byte;
        }
        if is_short {
            body.truncate(body.len() / 2);
            body.extend(&junk);
        }
        if let Ok((_, parts)) = read_plain_state(&body) {
            for part in parts {
                match part {
                    Loaded::Gate(mut gate) => {
                        let rows: Vec<_> = rows.iter().map(|(t, u, a)| (t + 50, *u, a % 3)).collect();
                        for _ in 0..3 {
                            decide(&mut gate, &rows, false, &mut Vec::new());
                            gate.forget(Value::Integer(1));
                        }
                    }
                    Loaded::Meter(mut meter) => {
                        meter.advance(60);
                        meter.periods();
                    }
                    Loaded::Ids(mut ids) => {
                        (0..50).for_each(|n| _ = ids.is_fresh(60, Some(Value::Integer(n))));
                    }
                }
            }
        }
        let _ = read_plain_state(&junk);
    }
}

#[test]
fn a_user_can_be_erased_from_what_was_loaded() {
    let (gate, _) = some_parts();
    let mut loaded = gate_of(read_plain_state(&plain(&[&gate])).unwrap().1);
    assert!(loaded.forget(Value::Integer(3)) > 0);
    let mut again = gate_of(read_plain_state(&plain(&[&loaded])).unwrap().1);
    assert_eq!(again.forget(Value::Integer(3)), 0);
}
