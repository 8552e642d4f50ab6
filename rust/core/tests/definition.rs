//! The gate against the definition, kept as plainly as it can be said: remember everything, and
//! count anew for every decision.

use proptest::prelude::*;
use std::collections::HashMap;
use zveil_core::{Column, Gate, Rule, Secret, Settings, VEILED, Value};

type Path = Vec<Option<i64>>;

/// The clock of an attribute and, in the order of last sight, its users with their times.
type Known = (i64, Vec<(i64, i64)>);

/// Everything that was ever observed, and nothing clever.
struct Definition {
    z: usize,
    z_max: usize,
    window: i64,
    lateness: i64,
    rule: Rule,
    clock: Option<i64>,
    /// Plain attributes and levels.
    attributes: HashMap<(bool, Path), Known>,
}

impl Definition {
    fn new(settings: &Settings) -> Self {
        Self {
            z: settings.z,
            z_max: settings.z_max,
            window: settings.window,
            lateness: settings.lateness,
            rule: settings.rule,
            clock: None,
            attributes: HashMap::new(),
        }
    }

    fn admit(&mut self, t: i64) -> bool {
        if self.clock.is_some_and(|clock| t < clock - self.lateness) {
            return false;
        }
        self.clock = Some(self.clock.map_or(t, |clock| clock.max(t)));
        true
    }

    fn count(&mut self, t: i64, user: i64, path: (bool, Path)) -> bool {
        let (clock, users) = self.attributes.entry(path).or_insert((t, Vec::new()));
        *clock = t.max(*clock);
        let floor = *clock - self.window;
        if t < floor {
            return false;
        }
        match users.iter().position(|(_, other)| *other == user) {
            Some(at) if users[at].0 > t => {}
            Some(at) => {
                users.remove(at);
                let place = users.partition_point(|(time, _)| *time <= t);
                users.insert(place, (t, user));
            }
            None => {
                let place = users.partition_point(|(time, _)| *time <= t);
                users.insert(place, (t, user));
            }
        }
        users.retain(|(time, _)| *time >= floor);
        users.len() >= self.z
    }

    fn observe(&mut self, t: i64, user: i64, attribute: i64) -> bool {
        self.admit(t) && self.count(t, user, (true, vec![Some(attribute)]))
    }

    fn observe_levels(&mut self, t: i64, user: i64, levels: &Path) -> Option<usize> {
        if levels.iter().all(Option::is_none) || !self.admit(t) {
            return None;
        }
        let rule = self.rule;
        let mut at = |level: usize| {
            levels[level].is_some() && self.count(t, user, (false, levels[..=level].to_vec()))
        };
        match rule {
            Rule::FallThrough => (0..levels.len()).rev().find(|level| at(*level)),
            Rule::Fixed(level) => {
                Some(usize::from(level)).filter(|level| *level < levels.len() && at(*level))
            }
            Rule::Authors => {
                let passed: Vec<bool> = (0..levels.len()).map(at).collect();
                passed.iter().rposition(|passed| *passed)
            }
        }
    }

    fn forget(&mut self, user: i64) {
        let z_max = self.z_max;
        for (_, users) in self.attributes.values_mut() {
            let older = users.len().saturating_sub(z_max);
            users.drain(..older);
            users.retain(|(_, other)| *other != user);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Batch(Vec<(i64, i64, i64)>),
    Levels(Vec<(i64, i64, Path)>),
    One(i64, i64, i64),
    SetZ(usize),
    Forget(i64),
    Snapshot(usize),
}

fn step(users: i64, attributes: i64) -> impl Strategy<Value = Step> {
    // Times are steps from the last one: mostly forward, often the same, sometimes far back.
    let time = prop_oneof![6 => 0_i64..4, 2 => -6_i64..0, 1 => -40_i64..40];
    let row = (time.clone(), 0..users, 0..attributes);
    let level = prop_oneof![5 => (0_i64..3).prop_map(Some), 1 => Just(None)];
    let path = proptest::collection::vec(level, 1..4);
    let levels = (time, 0..users, path);
    prop_oneof![
        6 => proptest::collection::vec(row.clone(), 1..30).prop_map(Step::Batch),
        3 => proptest::collection::vec(levels, 1..20).prop_map(Step::Levels),
        6 => row.prop_map(|(t, u, a)| Step::One(t, u, a)),
        1 => (1_usize..8).prop_map(Step::SetZ),
        1 => (0..users).prop_map(Step::Forget),
        1 => (1_usize..4).prop_map(Step::Snapshot),
    ]
}

fn column(values: &[Option<i64>]) -> Vec<Option<Value<'static>>> {
    values.iter().map(|value| value.map(Value::Integer)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_decision_is_the_definitions(
        z in 1_usize..8,
        more in 0_usize..4,
        window in 0_i64..20,
        lateness in 0_i64..40,
        threads in 1_usize..4,
        rule in prop_oneof![
            Just(Rule::FallThrough), Just(Rule::Authors), (0_u8..3).prop_map(Rule::Fixed)
        ],
        (users, attributes) in prop_oneof![Just((4, 2)), Just((12, 3)), Just((30, 40))],
        steps in proptest::collection::vec(step(30, 40), 1..60),
    ) {
        let settings = Settings {
            z_max: z + more, lateness, max_future: None, rule, threads, ..Settings::new(z, window)
        };
        let secret = Secret::new([3; 32]);
        let mut definition = Definition::new(&settings);
        let mut gate = Gate::new(settings, secret.clone()).map_err(fail)?;
        let folder = tempfile::tempdir().map_err(fail)?;
        let file = folder.path().join("snapshot");
        let mut now = 1000;
        for step in steps {
            match step {
                Step::One(dt, u, a) => {
                    now += dt;
                    let (u, a) = (u % users, a % attributes);
                    let released = gate.observe(now, Some(Value::Integer(u)), Some(Value::Integer(a)));
                    prop_assert_eq!(released, definition.observe(now, u, a));
                }
                Step::Batch(rows) => {
                    let mut expected = Vec::new();
                    let (mut times, mut us, mut attrs) = (vec![], vec![], vec![]);
                    for (dt, u, a) in rows {
                        now += dt;
                        let (u, a) = (u % users, a % attributes);
                        times.push(now);
                        us.push(u);
                        attrs.push(a);
                        expected.push(if definition.observe(now, u, a) { 0 } else { VEILED });
                    }
                    let mut decisions = vec![9; times.len()];
                    gate.observe_many(&times, &Ints(us), &Ints(attrs), &mut decisions).map_err(fail)?;
                    prop_assert_eq!(decisions, expected);
                }
                Step::Levels(rows) => {
                    let depth = rows.iter().map(|(_, _, path)| path.len()).max().unwrap_or(1);
                    let mut columns = vec![Vec::new(); depth];
                    let (mut expected, mut times, mut us) = (vec![], vec![], vec![]);
                    for (one, (dt, u, mut path)) in rows.into_iter().enumerate() {
                        now += dt;
                        let u = u % users;
                        path.resize(depth, None);
                        let level = definition.observe_levels(now, u, &path);
                        if one % 5 == 4 {
                            // Some rows one at a time, between batches.
                            let mut decisions = vec![9; times.len()];
                            decide_levels(&mut gate, &times, &us, &columns, &mut decisions)?;
                            prop_assert_eq!(&decisions, &expected);
                            for list in &mut columns { list.clear(); }
                            times.clear(); us.clear(); expected.clear();
                            let user = Some(Value::Integer(u));
                            let found = gate.observe_levels(now, user, &column(&path)).map_err(fail)?;
                            prop_assert_eq!(found, level);
                        } else {
                            for (list, value) in columns.iter_mut().zip(path) { list.push(value); }
                            times.push(now);
                            us.push(u);
                            expected.push(level.map_or(VEILED, |level| level as i8));
                        }
                    }
                    let mut decisions = vec![9; times.len()];
                    decide_levels(&mut gate, &times, &us, &columns, &mut decisions)?;
                    prop_assert_eq!(decisions, expected);
                }
                Step::SetZ(z) => {
                    let z = z.min(definition.z_max);
                    gate.set_z(z).map_err(fail)?;
                    definition.z = z;
                }
                Step::Forget(u) => {
                    gate.forget(Value::Integer(u % users));
                    definition.forget(u % users);
                }
                Step::Snapshot(threads) => {
                    let before = gate.stats();
                    gate.snapshot(&file, b"note").map_err(fail)?;
                    let (restored, note) = Gate::restore(&file, &secret, threads).map_err(fail)?;
                    prop_assert_eq!(note, b"note");
                    prop_assert_eq!(restored.stats().observed, before.observed);
                    prop_assert_eq!(restored.stats().attributes, before.attributes);
                    gate = restored;
                }
            }
        }
    }
}

struct Ints(Vec<i64>);

impl Column for Ints {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn value(&self, row: usize) -> Option<Value<'_>> {
        self.0.get(row).copied().map(Value::Integer)
    }
}

struct Options(Vec<Option<i64>>);

impl Column for Options {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn value(&self, row: usize) -> Option<Value<'_>> {
        self.0.get(row).copied().flatten().map(Value::Integer)
    }
}

fn decide_levels(
    gate: &mut Gate,
    times: &[i64],
    users: &[i64],
    columns: &[Vec<Option<i64>>],
    decisions: &mut [i8],
) -> Result<(), TestCaseError> {
    let columns: Vec<Options> = columns.iter().cloned().map(Options).collect();
    let columns: Vec<&dyn Column> = columns.iter().map(|column| column as &dyn Column).collect();
    gate.observe_levels_many(times, &Ints(users.to_vec()), &columns, decisions).map_err(fail)
}

fn fail(error: impl std::fmt::Display) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

/// Many new values let the table grow several times in one batch. What was looked up before it grew must
/// not be put where it was seen then: it would not be found again.
#[test]
fn values_are_found_again_after_the_table_has_grown() {
    const ROWS: i64 = 5_000;
    for levels in 1..5 {
        let mut gate = Gate::new(Settings::new(2, 1_000_000), Secret::random().unwrap()).unwrap();
        // Every other row is of one of a few values, the others are all new.
        let value = |row: i64| if row % 2 == 0 { row % 32 } else { row + 100 };
        let column = |level: i64| Ints((0..ROWS).map(|row| value(row) + level * 10_000).collect());
        let columns: Vec<Ints> = (0..levels).map(column).collect();
        let columns: Vec<&dyn Column> = columns.iter().map(|one| one as &dyn Column).collect();
        let (times, users) = ((0..ROWS).collect::<Vec<_>>(), Ints((0..ROWS).collect()));
        let mut decisions = vec![VEILED; times.len()];
        if levels == 1 {
            gate.observe_many(&times, &users, columns[0], &mut decisions).unwrap();
        } else {
            gate.observe_levels_many(&times, &users, &columns, &mut decisions).unwrap();
        }
        let finest = levels as i8 - 1;
        for (row, decision) in decisions.into_iter().enumerate() {
            // The first of each value is alone, and falls through to coarser levels of its own.
            let is_second = row % 2 == 0 && row >= 32;
            let wanted = if is_second { finest } else { VEILED };
            assert_eq!(decision, wanted, "row {row} with {levels} levels");
        }
    }
}
