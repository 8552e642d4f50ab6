//! The rule in the plainest words, held against the keyring on random streams.

use super::*;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

const HOUR: i64 = 3_600_000_000_000;
const FORMAT: PseudonymFormat = PseudonymFormat::Base32;

fn periods(lateness: i64) -> Periods {
    Periods { length: HOUR, lateness, max_future: None }
}

fn chain(lateness: i64) -> Keyring {
    Keyring::chain(Secret::new([7; 32]), FORMAT, periods(lateness)).unwrap()
}

/// A file with the same chain.
fn chain_file() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain");
    std::fs::write(&path, format!("zveil chain\nkey {}\n", "07".repeat(32))).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    (folder, path)
}

impl Keyring {
    fn is_chain(&self) -> bool {
        matches!(self.keys, Keys::Moving(_))
    }
}

/// The names of one user at some times, in batches of these sizes.
fn names(keyring: &mut Keyring, times: &[i64], cuts: &[usize]) -> Vec<Option<Pseudonym>> {
    let mut out = Vec::new();
    let (mut rest, mut cuts) = (times, cuts.iter().cycle());
    while !rest.is_empty() {
        let (batch, behind) = rest.split_at((*cuts.next().unwrap()).clamp(1, rest.len()));
        let (mut named, mut made) = (Named::default(), Vec::new());
        keyring.name(batch, |_| true, &mut named).unwrap();
        let users = (0..batch.len()).map(|row| (row, Some(Value::Text(b"ada"))));
        named.pseudonyms(users, &mut made);
        out.extend(made);
        rest = behind;
    }
    out
}

/// Whether each record has a key: told from the whole past.
fn expected(times: &[i64], lateness: i64) -> Vec<bool> {
    let mut clock = i64::MIN;
    times
        .iter()
        .map(|time| {
            clock = clock.max(*time);
            *time != i64::MIN && time.div_euclid(HOUR) >= (clock - lateness).div_euclid(HOUR)
        })
        .collect()
}

proptest! {
    #[test]
    fn a_record_has_the_key_of_its_own_period_or_none(
        steps in prop::collection::vec((-3 * HOUR..4 * HOUR, 0..20_u8), 1..200),
        lateness in 0..5 * HOUR,
        cuts in prop::collection::vec(1..40_usize, 1..5),
    ) {
        let mut now = 0;
        let times: Vec<i64> = steps.iter().map(|(step, kind)| {
            now += if *kind < 15 { step / 100 } else { *step };
            if *kind == 19 { i64::MIN } else { now }
        }).collect();
        let whole = names(&mut chain(lateness), &times, &[usize::MAX]);
        prop_assert_eq!(&names(&mut chain(lateness), &times, &cuts), &whole);
        if times[0] != i64::MIN {
            let found: Vec<bool> = whole.iter().map(Option::is_some).collect();
            prop_assert_eq!(found, expected(&times, lateness));
        }
        let mut by_period = HashMap::new();
        for (time, name) in times.iter().zip(&whole) {
            if let Some(name) = name {
                let name = format!("{name:?}");
                let known = by_period.entry(time.div_euclid(HOUR)).or_insert(name.clone());
                prop_assert_eq!(known, &name);
            }
        }
        let distinct: HashSet<_> = by_period.values().collect();
        prop_assert_eq!(distinct.len(), by_period.len());
    }

    #[test]
    fn kept_keys_go_by_the_period_alone(times in prop::collection::vec(any::<i64>(), 1..50)) {
        let new = || Keyring::kept(Secret::new([7; 32]), FORMAT, HOUR).unwrap();
        let mut sorted = times.clone();
        sorted.sort_unstable();
        let wanted: HashMap<_, _> =
            sorted.iter().copied().zip(names(&mut new(), &sorted, &[3])).collect();
        for (time, name) in times.iter().zip(names(&mut new(), &times, &[7])) {
            prop_assert_eq!(name, wanted[time]);
            prop_assert_eq!(name.is_some(), *time != i64::MIN);
        }
    }
}

/// Steps in time, some of them wide.
fn steps() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec((-3 * HOUR..4 * HOUR, 0..20_u8), 1..200).prop_map(|steps| {
        let mut now = 0;
        let time = |(step, kind): (i64, u8)| {
            now += if kind < 15 { step / 100 } else { step };
            if kind == 19 { i64::MIN } else { now }
        };
        steps.into_iter().map(time).collect()
    })
}

proptest! {
    #[test]
    fn it_goes_on_from_a_state(
        times in steps(),
        lateness in 0..5 * HOUR,
        cut in any::<prop::sample::Index>(),
    ) {
        let cut = cut.index(times.len());
        let news: [fn(i64) -> Keyring; 3] = [
            chain,
            |_| Keyring::kept(Secret::new([7; 32]), FORMAT, HOUR).unwrap(),
            |_| Keyring::fixed(&Secret::new([7; 32]), FORMAT),
        ];
        for new in news {
            let whole = names(&mut new(lateness), &times, &[9]);
            let mut first = new(lateness);
            let mut found = names(&mut first, &times[..cut], &[7]);
            // A chain without a file has its key in the state.
            let other = Keyring::chain(Secret::new([9; 32]), FORMAT, periods(lateness)).unwrap();
            let mut second = if first.is_chain() { other } else { new(lateness) };
            second.resume(&first.state()).unwrap();
            found.extend(names(&mut second, &times[cut..], &[5]));
            prop_assert_eq!(found, whole);
        }
    }

    #[test]
    fn a_file_that_is_held_goes_on_from_any_state_that_is_safe(
        times in steps(),
        lateness in 0..5 * HOUR,
        points in prop::collection::vec(any::<prop::sample::Index>(), 3),
        is_told in any::<bool>(),
    ) {
        // Only what is not late has a key; times that are none begin nothing.
        let mut points: Vec<_> = points.iter().map(|point| point.index(times.len())).collect();
        points.sort_unstable();
        let [saved, later, lost] = points[..] else { return Ok(()) };
        let (_folder, path) = chain_file();
        let open = || {
            let mut keyring = Keyring::chain_file(&path, FORMAT, periods(lateness)).unwrap();
            keyring.hold();
            keyring
        };
        let whole = names(&mut chain(lateness), &times, &[9]);
        let mut first = open();
        names(&mut first, &times[..saved], &[7]);
        first.settle().unwrap();
        let state = first.state();
        names(&mut first, &times[saved..later], &[7]);
        first.settle().unwrap();
        // Another state is being saved when the first is safe.
        let unsafe_state = first.state();
        if is_told {
            first.move_on(Some(&state)).unwrap();
        }
        names(&mut first, &times[later..lost], &[7]);
        first.settle().unwrap();
        drop(first);
        let mut second = open();
        second.resume(&state).unwrap();
        let found = names(&mut second, &times[saved..], &[5]);
        prop_assert_eq!(&found[..], &whole[saved..]);
        let _ = unsafe_state;
    }
}

#[test]
fn the_file_has_the_key_of_the_state_that_is_safe() {
    let (_folder, path) = chain_file();
    let mut keyring = Keyring::chain_file(&path, FORMAT, periods(0)).unwrap();
    keyring.hold();
    let number = || {
        let text = std::fs::read_to_string(&path).unwrap();
        text.lines().find_map(|line| line.strip_prefix("number ")).map(str::to_owned)
    };
    names(&mut keyring, &[10 * HOUR, 12 * HOUR], &[1]);
    keyring.settle().unwrap();
    assert_eq!(number(), None);
    let twelve = keyring.state();
    names(&mut keyring, &[15 * HOUR], &[1]);
    keyring.state();
    keyring.move_on(Some(&twelve)).unwrap();
    assert_eq!(number().as_deref(), Some("12"));
    keyring.move_on(None).unwrap();
    assert_eq!(number().as_deref(), Some("15"));
    drop(keyring);
    let mut late = Keyring::chain_file(&path, FORMAT, periods(0)).unwrap();
    let told = late.resume(&twelve).unwrap_err().to_string();
    assert!(told.contains("its keys are gone"), "{told}");
    assert!(late.resume(b"x").is_err());
    assert!(late.resume(&chain(0).state()).is_err());
    let mut fixed = Keyring::fixed(&Secret::new([7; 32]), FORMAT);
    assert!(fixed.resume(&twelve).is_err());
}

#[test]
fn the_future_moves_nothing() {
    let far = Periods { max_future: Some(0), ..periods(0) };
    let mut keyring = Keyring::chain(Secret::new([7; 32]), FORMAT, far).unwrap();
    let found = names(&mut keyring, &[0, i64::MAX, 1], &[1]);
    assert_eq!((found[0], found[1]), (found[2], None));
}

#[test]
fn an_absurd_jump_ends_it() {
    let mut keyring = chain(0);
    let ended = keyring.name(&[0, i64::MAX], |_| true, &mut Named::default());
    assert!(matches!(ended, Err(Error::Jump { .. })));
}

#[test]
fn a_length_is_checked() {
    let short = Periods { length: SHORTEST - 1, ..periods(0) };
    assert!(Keyring::chain(Secret::new([7; 32]), FORMAT, short).is_err());
    assert!(Keyring::chain(Secret::new([7; 32]), FORMAT, periods(i64::MAX)).is_err());
    assert!(Keyring::kept(Secret::new([7; 32]), FORMAT, 0).is_err());
}

#[test]
fn a_fixed_key_needs_no_time() {
    let mut keyring = Keyring::fixed(&Secret::new([7; 32]), FORMAT);
    let found = names(&mut keyring, &[0, i64::MIN, i64::MAX], &[2]);
    assert_eq!(found, [Maker::new(&Secret::new([7; 32]), FORMAT).of(Value::Text(b"ada")); 3]);
}

#[test]
fn a_file_goes_on_where_it_was_and_not_before() {
    let (_folder, path) = chain_file();
    let open = || Keyring::chain_file(&path, FORMAT, periods(HOUR)).unwrap();
    let times: Vec<i64> = (10..14).map(|hour| hour * HOUR).collect();
    let wanted = names(&mut chain(HOUR), &times, &[1]);

    let mut keyring = open();
    assert_eq!(names(&mut keyring, &times[..3], &[1]), wanted[..3]);
    keyring.settle().unwrap();
    drop(keyring);
    assert!(std::fs::read_to_string(&path).unwrap().contains("\nnumber 11\n"));

    // Old events first, which do not leave; then one that would.
    let mut keyring = open();
    let mut named = Named::default();
    keyring.name(&[10 * HOUR], |_| false, &mut named).unwrap();
    let ended = keyring.name(&[10 * HOUR], |_| true, &mut named).unwrap_err();
    assert!(ended.to_string().contains("has moved on to 1970-01-01T11:00:00Z"), "{ended}");
    drop(keyring);

    let found = names(&mut open(), &[11 * HOUR, 13 * HOUR, 10 * HOUR, 11 * HOUR], &[4]);
    assert_eq!(found, [wanted[1], wanted[3], None, None]);
}
