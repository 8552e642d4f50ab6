use super::*;
use crate::secret::Secret;
use std::collections::{HashMap, HashSet};

/// Words that look random, the same ones in every run.
fn mark(number: u64) -> Mark {
    let mixed = (u128::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    Mark::new((mixed ^ mixed >> 61).wrapping_mul(0xBF58_476D_1CE4_E5B9_94D0_49BB_1331_11EB))
}

fn tools() -> Tools {
    Tools::new(&Secret::new([7; 32]))
}

/// The fingerprint of a set, by its definition.
fn print(values: &HashSet<u32>, hasher: &Hasher) -> u128 {
    let mut words: Vec<u128> = values.iter().map(|value| u128::from(*value)).collect();
    hasher.user_words(&mut words);
    words.into_iter().fold(0, |print, word| print ^ word)
}

/// Takes in `count` releases of so many users and values, and holds the parts against plain sets.
fn hold(users: u64, values: u64, count: u64, look: u64) -> usize {
    let (tools, mut budget) = (tools(), Budget::new(None));
    let hasher = tools.lens.hasher();
    let mut parts = Parts::new(0x1234_5678_9ABC_DEF1, &mut budget).unwrap();
    let mut sets: HashMap<u64, HashSet<u32>> = HashMap::new();
    for number in 0..count {
        let drawn = mark(number).high;
        let (user, value) = (drawn % users, ((drawn >> 32) % values) as u32);
        sets.entry(user).or_default().insert(value);
        parts.note(Release::new(mark(user), value), hasher, &mut budget).unwrap();
        if number % look == 0 {
            parts.take_in_all(&tools, &mut budget).unwrap();
            assert!(parts.all().all(|(_, waiting)| waiting.is_empty()));
        }
    }
    parts.take_in_all(&tools, &mut budget).unwrap();
    assert_eq!(parts.pairs(), sets.values().map(|set| set.len() as u64).sum::<u64>());
    assert_eq!(parts.all().map(|(part, _)| part.users().len()).sum::<usize>(), sets.len());
    for (user, set) in &sets {
        let found = parts.find(mark(*user)).expect("who has something is there");
        assert_eq!(found.print(), print(set, hasher));
    }
    assert!(parts.find(mark(users)).is_none());
    let names: HashMap<Mark, u64> = sets.keys().map(|user| (mark(*user), *user)).collect();
    let mut found: HashMap<u64, HashSet<u32>> = HashMap::new();
    for (part, _) in parts.all() {
        for user in part.users() {
            let few = user.few().iter().map(|value| u32::from(*value));
            found.entry(names[&user.mark()]).or_default().extend(few);
        }
        for word in part.words() {
            let user = names[&part.users()[usize::from(word.user())].mark()];
            found.entry(user).or_default().extend(word.values());
        }
    }
    assert_eq!(found, sets);
    let size = parts.parts.len();
    parts.free(&mut budget);
    assert_eq!(budget.used(), 0);
    size
}

#[test]
fn parts_hold_what_users_have() {
    assert_eq!(hold(40, 100, 5_000, 37), 1);
    // Cut because there are many users, and because they have much.
    assert!(hold(20_000, 3, 60_000, 1 << 40) > 8);
    assert!(hold(300, 60_000, 120_000, 1 << 40) > 4);
    assert!(hold(3_000, 5_000, 100_000, 9_973) > 4);
}

#[test]
fn many_values_of_one_user_are_no_end() {
    let (tools, mut budget) = (tools(), Budget::new(None));
    let hasher = tools.lens.hasher();
    let mut parts = Parts::new(0x9ABC_DEF1_1234_5679, &mut budget).unwrap();
    let outcome = (0..600_000)
        .try_for_each(|value| parts.note(Release::new(mark(1), value * 32), hasher, &mut budget));
    assert_eq!(outcome, Ok(()));
    parts.take_in_all(&tools, &mut budget).unwrap();
    assert_eq!(parts.pairs(), 600_000);
}

#[test]
fn a_limit_is_never_passed() {
    let limit = 1 << 20;
    let (tools, mut budget) = (tools(), Budget::new(Some(limit)));
    let hasher = tools.lens.hasher();
    let mut parts = Parts::new(0xDEF1_1234_5679_9ABD, &mut budget).unwrap();
    let is_noted = |number: u64| {
        let release = Release::new(mark(number), number as u32);
        let is_noted = parts.note(release, hasher, &mut budget).is_ok();
        assert!(budget.used() <= limit);
        is_noted
    };
    assert!(!(0..200_000).all(is_noted));
    parts.free(&mut budget);
    assert_eq!(budget.used(), 0);
}
