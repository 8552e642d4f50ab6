use super::*;
use crate::column::Column;
use crate::error::SnapshotError;
use std::collections::{BTreeSet, HashMap, HashSet};

const KEY: [u8; 32] = [5; 32];

fn settings(rotate: Option<i64>, lateness: i64) -> MeterSettings {
    MeterSettings { rotate, lateness, memory_limit: None }
}

fn meter(settings: MeterSettings) -> Meter {
    Meter::new(settings, Secret::new(KEY)).unwrap()
}

fn sight(meter: &Meter, time: i64, user: i64, value: i64) -> Sight {
    let field = meter.lens().field("a");
    meter.lens().sight(time, Value::Integer(user), field, Value::Integer(value)).unwrap()
}

/// Numbers that look random, the same ones in every run.
pub(super) struct Draws(pub(super) u64);

impl Draws {
    pub(super) fn below(&mut self, end: u64) -> i64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % end) as i64
    }
}

/// The definition: sets, compared.
fn sizes(sets: &HashMap<i64, BTreeSet<i64>>) -> BTreeMap<u64, u64> {
    let mut classes: HashMap<&BTreeSet<i64>, u64> = HashMap::new();
    sets.values().for_each(|set| *classes.entry(set).or_default() += 1);
    let mut found = BTreeMap::new();
    classes.values().for_each(|size| *found.entry(*size).or_default() += size);
    found
}

#[test]
fn random_releases_are_counted_as_sets() {
    let mut draws = Draws(1);
    let mut meter = meter(settings(None, 0));
    let mut sets: HashMap<i64, BTreeSet<i64>> = HashMap::new();
    for round in 0..60 {
        let mut sights = Vec::new();
        for _ in 0..draws.below(400) {
            let (user, value) = (draws.below(3000), draws.below(3) * draws.below(4));
            sets.entry(user).or_default().insert(value);
            sights.push(sight(&meter, round, user, value));
        }
        meter.count(&sights);
        let shown = meter.present().shown;
        assert_eq!(shown.sizes, sizes(&sets));
        assert_eq!(shown.users, sets.len() as u64);
        assert_eq!(shown.classes, sets.values().collect::<BTreeSet<_>>().len() as u64);
        assert_eq!(shown.pairs, sets.values().map(BTreeSet::len).sum::<usize>() as u64);
        for k in [0, 1, 2, 3, 10, 100] {
            let wanted = shown.sizes.range(k..).map(|(_, users)| users).sum();
            assert_eq!(meter.counts(0, k as usize), Some((shown.users, wanted)));
        }
    }
}

pub(super) struct Numbers(pub(super) Vec<i64>);

impl Column for Numbers {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn value(&self, row: usize) -> Option<Value<'_>> {
        self.0.get(row).copied().map(Value::Integer)
    }

    fn words(&self) -> Option<&[i64]> {
        Some(&self.0)
    }
}

#[test]
fn long_columns_of_integers_are_counted_row_by_row() {
    let mut draws = Draws(3);
    let settings = settings(Some(50_000), 9_000);
    let (mut one, mut other) = (meter(settings), meter(settings));
    let field = one.lens().field("a");
    for batch in 0..4 {
        let rows = 40_000;
        // Over the end of a period and back, and some without a time.
        let times: Vec<i64> = (0..rows)
            .map(|row| match draws.below(400) {
                0 => i64::MIN,
                _ => batch * 30_000 + row - draws.below(if row % 7 == 0 { 20_000 } else { 5 }),
            })
            .collect();
        let users: Vec<i64> = (0..rows).map(|_| draws.below(700)).collect();
        let values: Vec<i64> = (0..rows).map(|_| draws.below(90) * draws.below(90) - 9).collect();
        let left: Vec<u8> = (0..rows).map(|_| u8::from(draws.below(3) > 0)).collect();
        for row in (0..rows as usize).filter(|row| left[*row] == 1 && times[*row] != i64::MIN) {
            other.count(&[sight(&other, times[row], users[row], values[row])]);
        }
        let values = Numbers(values);
        let released = Released { field, values: &values, rows: Some(&left) };
        one.add(&times, &Numbers(users), &[released]).unwrap();
        assert_eq!(one.periods(), other.periods(), "batch {batch}");
        assert_eq!(one.present(), other.present());
    }
    assert!(one.periods().len() > 2);
}

#[test]
fn a_class_of_many_thousands_is_counted() {
    let mut meter = meter(settings(None, 0));
    let all: Vec<_> = (0..10_000).map(|user| sight(&meter, 0, user, 0)).collect();
    meter.count(&all);
    assert_eq!(meter.present().shown.sizes, BTreeMap::from([(10_000, 10_000)]));
    assert_eq!(meter.counts(0, 9_000), Some((10_000, 10_000)));
    let some: Vec<_> = (0..6_000).map(|user| sight(&meter, 0, user, 1)).collect();
    meter.count(&some);
    assert_eq!(meter.present().shown.sizes, BTreeMap::from([(4_000, 4_000), (6_000, 6_000)]));
    assert_eq!(meter.counts(0, 5_000), Some((10_000, 6_000)));
}

/// More users than changes are remembered of, so that all are counted anew: some alone, some alike.
fn many(meter: &mut Meter, sets: &mut HashMap<i64, BTreeSet<i64>>, seed: u64) {
    let mut draws = Draws(seed);
    let mut sights = Vec::new();
    for user in 0..150_000 {
        for _ in 0..1 + draws.below(3) {
            let value = if user % 2 == 0 { draws.below(4) } else { draws.below(3_000) };
            sets.entry(user).or_default().insert(value);
            sights.push(sight(meter, 0, user, value));
        }
    }
    meter.count(&sights);
}

#[test]
fn very_many_are_counted_anew_with_much_memory_and_with_little() {
    let (mut sets, mut others) = (HashMap::new(), HashMap::new());
    let mut one = meter(settings(None, 0));
    for seed in 0..3 {
        many(&mut one, &mut sets, seed);
        let shown = one.present().shown;
        assert_eq!(shown.sizes, sizes(&sets));
        assert_eq!(shown.classes, sets.values().collect::<HashSet<_>>().len() as u64);
    }
    // Not enough for the fingerprints of all at once.
    let memory_limit = Some(one.bytes() + (3 << 19));
    let mut other = meter(MeterSettings { memory_limit, ..settings(None, 0) });
    for seed in 0..3 {
        many(&mut other, &mut others, seed);
        let reading = other.present();
        assert!(!reading.is_stopped);
        assert_eq!(reading.shown.sizes, sizes(&others));
    }
    assert!(!other.budget.has(sets.len() * prints::Prints::EACH));
}

#[test]
fn a_period_stays_open_for_what_is_late() {
    let mut meter = meter(settings(Some(10), 5));
    let at = |meter: &Meter, time| [sight(meter, time, time, 0)];
    for time in [3, 11, 9, 14, 16, 8, 31] {
        let seen = at(&meter, time);
        meter.count(&seen);
    }
    let found: Vec<_> =
        meter.periods().iter().map(|it| (it.period, it.shown.users, it.late, it.is_over)).collect();
    assert_eq!(found, [(0, 2, 1, true), (1, 3, 0, true), (3, 1, 0, false)]);
    meter.advance(45);
    assert_eq!((meter.period(), meter.present().shown.users), (4, 0));
    assert_eq!(meter.counts(3, 1), Some((1, 1)));
    assert_eq!(meter.counts(4, 1), Some((0, 0)));
    meter.advance(60);
    assert_eq!(meter.bytes(), 0, "memory goes back");
}

#[test]
fn at_its_limit_it_stops_for_the_period() {
    let limit = 256 << 10;
    let of_period = MeterSettings { memory_limit: Some(limit), ..settings(Some(10), 0) };
    let mut meter = meter(of_period);
    let many: Vec<_> = (0..20_000).map(|user| sight(&meter, 5, user, user)).collect();
    for part in many.chunks(1000) {
        meter.count(part);
        assert!(meter.bytes() <= limit);
    }
    let now = meter.present();
    assert!(now.is_stopped && now.shown == Shown::default());
    assert_eq!((meter.counts(0, 1), meter.bytes()), (None, 0));
    meter.count(&[sight(&meter, 12, 1, 1)]);
    let [before, now] = &meter.periods()[..] else { panic!("two periods") };
    assert!(before.is_stopped && before.is_over && !now.is_stopped);
    assert_eq!(now.shown.users, 1);
}

#[test]
fn what_was_saved_goes_on() {
    let mut draws = Draws(2);
    let mut one = meter(settings(Some(100), 30));
    let mut time = 0;
    for round in 0..30 {
        let sights: Vec<_> = (0..200)
            .map(|_| {
                time += draws.below(3);
                sight(&one, time - draws.below(30), draws.below(50), draws.below(8))
            })
            .collect();
        let mut other = Meter::of_bytes(Secret::new(KEY), &one.to_bytes().unwrap()).unwrap();
        one.count(&sights);
        other.count(&sights);
        assert_eq!(one.periods(), other.periods(), "round {round}");
        assert_eq!(one.present(), other.present());
        if round % 2 == 0 {
            one = other;
        }
    }
}

#[test]
fn what_is_cut_off_or_altered_or_of_another_key_is_refused() {
    let mut meter = meter(settings(Some(10), 5));
    let sights: Vec<_> = (0..40).map(|time| sight(&meter, time, time % 7, time % 3)).collect();
    meter.count(&sights);
    let mut saved = meter.to_bytes().unwrap();
    let read = |saved: &[u8]| Meter::of_bytes(Secret::new(KEY), saved);
    assert!(read(&saved).is_ok());
    assert!(matches!(
        Meter::of_bytes(Secret::new([6; 32]), &saved),
        Err(Error::Snapshot(SnapshotError::Key))
    ));
    assert!((0..saved.len()).all(|length| read(&saved[..length]).is_err()));
    saved.push(0);
    assert!(read(&saved).is_err());
    saved[0] = 3;
    assert!(matches!(
        read(&saved),
        Err(Error::Snapshot(SnapshotError::Version { found: 3, known: 2 }))
    ));
}

#[test]
fn what_is_given_up_is_gone_until_another_period() {
    let mut meter = meter(settings(Some(10), 5));
    meter.count(&[sight(&meter, 1, 1, 1), sight(&meter, 17, 1, 1)]);
    meter.give_up();
    let stopped = |meter: &mut Meter| -> Vec<bool> {
        meter.periods().iter().map(|period| period.is_stopped).collect()
    };
    assert_eq!(stopped(&mut meter), [false, true]);
    assert_eq!((meter.bytes(), meter.counts(1, 2)), (0, None));
    meter.count(&[sight(&meter, 18, 2, 1), sight(&meter, 21, 2, 1)]);
    assert_eq!(stopped(&mut meter), [false, true, false]);
    // The period before may have gone without anything to be shown, and is not known any more either.
    let mut other = self::meter(settings(Some(10), 5));
    other.advance(32);
    other.give_up();
    other.count(&[sight(&other, 28, 1, 1), sight(&other, 33, 1, 1)]);
    assert_eq!(stopped(&mut other), [true, true]);
}

#[test]
fn a_lower_lateness_ends_periods_at_once() {
    let mut meter = meter(settings(Some(10), 5));
    meter.count(&[sight(&meter, 9, 1, 1), sight(&meter, 12, 1, 1)]);
    assert!(meter.resettle(6, None).is_err());
    meter.resettle(1, Some(1 << 30)).unwrap();
    let over: Vec<_> = meter.periods().iter().map(|period| period.is_over).collect();
    assert_eq!(over, [true, false]);
    let again = Meter::of_bytes(Secret::new(KEY), &meter.to_bytes().unwrap());
    assert_eq!(again.unwrap().periods(), meter.periods());
}
