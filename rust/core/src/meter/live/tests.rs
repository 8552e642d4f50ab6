use super::*;
use crate::meter::MeterSettings;
use crate::meter::tests::{Draws, Numbers};
use crate::secret::Secret;

const KEY: [u8; 32] = [9; 32];

struct Rows {
    times: Vec<i64>,
    users: Vec<i64>,
    values: Vec<i64>,
    left: Vec<u8>,
}

impl Rows {
    /// Goes on from a time, in spells in order and spells with some that are late or have no time.
    fn drawn(draws: &mut Draws, count: usize, from: i64) -> Self {
        let mut rows = Self { times: vec![], users: vec![], values: vec![], left: vec![] };
        let mut time = from;
        for row in 0..count {
            time += draws.below(3);
            rows.times.push(match draws.below(900) {
                0 => i64::MIN,
                1..90 if row / 3000 % 2 == 1 => time - draws.below(12_000),
                _ => time,
            });
            rows.users.push(draws.below(3000));
            rows.values.push(draws.below(90) * draws.below(90) - 9);
            rows.left.push(u8::from(row % 5000 < 1000 || draws.below(3) > 0));
        }
        rows
    }

    fn part(&self, from: usize, to: usize) -> Self {
        Self {
            times: self.times[from..to].to_vec(),
            users: self.users[from..to].to_vec(),
            values: self.values[from..to].to_vec(),
            left: self.left[from..to].to_vec(),
        }
    }

    fn latest(&self) -> i64 {
        self.times.iter().copied().max().unwrap_or_default()
    }

    fn bring(
        &self,
        lens: &Lens,
        add: impl FnOnce(&[i64], &dyn Column, &[Released]) -> Result<(), Error>,
    ) {
        let (users, values) = (Numbers(self.users.clone()), Numbers(self.values.clone()));
        let field = lens.field("a");
        let released = Released { field, values: &values, rows: Some(&self.left) };
        add(&self.times, &users, &[released]).unwrap();
    }

    fn to(&self, live: &mut LiveMeter) {
        let lens = Arc::clone(live.lens());
        self.bring(&lens, |times, users, fields| live.add(times, users, fields));
    }
}

fn meter(settings: MeterSettings) -> Meter {
    Meter::new(settings, Secret::new(KEY)).unwrap()
}

fn settings(memory_limit: Option<usize>) -> MeterSettings {
    MeterSettings { rotate: Some(50_000), lateness: 9_000, memory_limit }
}

fn without_end() -> MeterSettings {
    MeterSettings { rotate: None, lateness: 0, memory_limit: None }
}

/// Brings the same to one without the thread and to one with it, and holds them against one another byte by byte.
fn hold(settings: MeterSettings, seed: u64) -> Vec<bool> {
    let mut draws = Draws(seed);
    let mut one = meter(settings);
    let mut other = LiveMeter::beside(meter(settings), true);
    let mut third = LiveMeter::beside(meter(settings), false);
    let mut time = 0;
    for _ in 0..30 {
        let count = [1, 9, 700, 5_000, 20_000, 40_000][draws.below(6) as usize];
        let rows = Rows::drawn(&mut draws, count, time);
        time = rows.latest();
        let lens = Arc::clone(one.lens());
        rows.bring(&lens, |times, users, fields| one.add(times, users, fields));
        rows.to(&mut other);
        rows.to(&mut third);
        if draws.below(4) == 0 {
            time += draws.below(30_000);
            one.advance(time);
            other.advance(time).unwrap();
            third.advance(time).unwrap();
        }
        if draws.below(4) == 0 {
            assert_eq!(other.meter().unwrap().bytes(), one.bytes());
            assert_eq!(other.meter().unwrap().to_bytes().unwrap(), one.to_bytes().unwrap());
            assert_eq!(other.meter().unwrap().present(), one.present());
            third.meter().unwrap().present();
        }
    }
    assert_eq!(third.meter().unwrap().to_bytes().unwrap(), one.to_bytes().unwrap());
    let found = one.periods();
    assert_eq!(other.meter().unwrap().periods(), found);
    found.iter().map(|reading| reading.is_stopped).collect()
}

#[test]
fn beside_it_comes_to_the_same_bytes_as_in_place() {
    for seed in 0..4 {
        assert!(hold(settings(None), seed).iter().all(|is_stopped| !is_stopped));
        hold(without_end(), seed);
    }
}

#[test]
fn at_its_limit_it_stops_where_one_in_place_does() {
    for seed in 0..4 {
        let stopped = hold(settings(Some(1300 << 10)), seed);
        assert!(stopped.contains(&true) && stopped.contains(&false), "{stopped:?}");
    }
}

#[test]
fn any_cut_into_batches_shows_the_same() {
    let mut draws = Draws(7);
    let rows = Rows::drawn(&mut draws, 200_000, 0);
    let mut shown = Vec::new();
    for most in [200_000, 60_000, 6_000, 50] {
        let mut live = LiveMeter::beside(meter(settings(None)), true);
        let mut from = 0;
        while from < rows.times.len() {
            let to = (from + 1 + draws.below(most) as usize).min(rows.times.len());
            rows.part(from, to).to(&mut live);
            from = to;
        }
        shown.push(live.meter().unwrap().periods());
    }
    assert!(shown[0].len() > 2 && shown[0].iter().any(|reading| reading.late > 0));
    assert!(shown.iter().all(|other| *other == shown[0]));
}

/// What keeps the thread busy for a while.
fn much() -> Rows {
    Rows::drawn(&mut Draws(1), 300_000, 0)
}

#[test]
fn what_is_saved_while_much_waits_goes_on() {
    let (first, second) = (much(), Rows::drawn(&mut Draws(2), 50_000, 300_000));
    let mut live = LiveMeter::beside(meter(settings(None)), true);
    first.to(&mut live);
    assert!(live.settled().is_none(), "it is elsewhere");
    let saved = live.meter().unwrap().to_bytes().unwrap();
    assert!(live.settled().is_some());
    let again = Meter::of_bytes(Secret::new(KEY), &saved).unwrap();
    let mut again = LiveMeter::beside(again, true);
    second.to(&mut live);
    second.to(&mut again);
    assert_eq!(live.meter().unwrap().periods(), again.meter().unwrap().periods());
}

#[test]
fn few_rows_are_taken_in_at_once_unless_others_wait() {
    let few = Rows::drawn(&mut Draws(3), 40, 900_000);
    let mut live = LiveMeter::beside(meter(without_end()), true);
    few.to(&mut live);
    assert!(live.settled().is_some() && live.clerk.is_none(), "no thread for a few");
    let mut one = meter(without_end());
    let lens = Arc::clone(one.lens());
    for rows in [&few, &much()] {
        rows.bring(&lens, |times, users, fields| one.add(times, users, fields));
    }
    much().to(&mut live);
    for _ in 0..2_000 {
        few.to(&mut live);
        live.advance(900_100).unwrap();
        few.bring(&lens, |times, users, fields| one.add(times, users, fields));
    }
    assert_eq!(live.meter().unwrap().present(), one.present());
    few.to(&mut live);
    assert!(live.settled().is_some());
}

#[test]
fn what_waits_is_bounded() {
    let mut live = LiveMeter::beside(meter(settings(Some(1 << 20))), true);
    let rows = much();
    rows.to(&mut live);
    assert_eq!(live.most, (1 << 20) / SHARE);
    let held = live.clerk.as_ref().map(Clerk::waiting);
    assert!(held.is_some_and(|held| held <= live.most), "{held:?}");
}

#[test]
fn one_that_is_dropped_with_much_waiting_ends() {
    for _ in 0..20 {
        let mut live = LiveMeter::beside(meter(settings(None)), true);
        much().to(&mut live);
        drop(live);
    }
}

#[test]
fn nobody_waits_for_a_thread_that_is_lost() {
    let mut live = LiveMeter::beside(meter(settings(None)), true);
    let rows = much();
    rows.to(&mut live);
    live.send(&mut Load::Fault).unwrap();
    assert!(matches!(live.meter(), Err(Error::Lost)));
    let (users, values) = (Numbers(rows.users.clone()), Numbers(rows.values.clone()));
    let field = live.lens().field("a");
    let released = [Released { field, values: &values, rows: None }];
    assert!(matches!(live.add(&rows.times, &users, &released), Err(Error::Lost)));
    assert!(matches!(live.advance(0), Err(Error::Lost)));
    assert!(live.meter().is_err() && live.settled().is_none());
}
