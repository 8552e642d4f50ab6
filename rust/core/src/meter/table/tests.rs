use super::*;
use crate::meter::entry::{Class, ClassLine, Mark};
use std::collections::HashSet;

/// Words that look random, the same ones in every run.
fn mark(number: u64) -> Mark {
    let mixed = (u128::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    Mark::new((mixed ^ mixed >> 61).wrapping_mul(0xBF58_476D_1CE4_E5B9_94D0_49BB_1331_11EB))
}

fn class(number: u64) -> Class {
    Class::new(mark(number), 1)
}

#[test]
fn what_is_put_in_is_found_and_what_is_taken_out_is_not() {
    let mut budget = Budget::new(None);
    let mut table = Table::<ClassLine>::new(&mut budget).unwrap();
    let mut wanted = HashSet::new();
    // More than one segment of the largest size holds.
    for number in 0..600_000_u64 {
        let (_, _, is_new) = table.entry(class(number), &mut budget).unwrap();
        assert!(is_new);
        wanted.insert(number);
        if number % 3 == 0 {
            let place = table.find(&class(number / 2));
            assert_eq!(place.is_some(), wanted.remove(&(number / 2)));
            place.into_iter().for_each(|place| table.remove(place));
        }
    }
    assert!(table.segments.len() > 2 && table.directory.len() >= table.segments.len());
    assert_eq!(table.len(), wanted.len());
    assert_eq!(table.entries().count(), wanted.len());
    for number in 0..600_000 {
        let found = table.find(&class(number)).and_then(|place| table.get(place));
        assert_eq!(found, wanted.contains(&number).then(|| class(number)));
    }
    table.clear();
    assert_eq!((table.len(), table.entries().count()), (0, 0));
    table.free(&mut budget);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_limit_is_never_passed() {
    let limit = 1 << 20;
    let mut budget = Budget::new(Some(limit));
    let mut table = Table::<ClassLine>::new(&mut budget).unwrap();
    let is_put = |number| {
        let is_put = table.entry(class(number), &mut budget).is_ok();
        assert!(budget.used() <= limit);
        is_put
    };
    assert!(!(0..200_000).all(is_put));
    table.free(&mut budget);
    assert_eq!(budget.used(), 0);
}

#[test]
fn room_for_many_changes_nothing_else() {
    for (limit, more) in [(None, 300), (None, 9_000), (None, 300_000), (Some(2 << 20), 300_000)] {
        let mut budget = Budget::new(limit);
        let mut table = Table::<ClassLine>::new(&mut budget).unwrap();
        for number in 0..9_000 {
            table.entry(class(number), &mut budget).unwrap();
        }
        let before = table.segments.len();
        table.reserve(more as usize, &mut budget).unwrap();
        assert_eq!(table.segments.len() > before, limit.is_none() && more >= 9_000);
        assert_eq!((table.len(), table.entries().count()), (9_000, 9_000));
        for number in 0..18_000 {
            let found = table.find(&class(number)).and_then(|place| table.get(place));
            assert_eq!(found, (number < 9_000).then(|| class(number)));
        }
        let after = table.segments.len();
        let last = 9_000 + if limit.is_none() { more } else { 20_000 };
        (9_000..last).for_each(|number| _ = table.entry(class(number), &mut budget).unwrap());
        assert_eq!(table.len(), last as usize);
        assert!(limit.is_some() || table.segments.len() == after, "there was room");
        table.free(&mut budget);
        assert_eq!(budget.used(), 0);
    }
}
