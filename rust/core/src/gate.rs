//! The gate: one decision for each observation, at the moment it arrives.

use crate::admission::{Admission, Admitted};
use crate::census::Census;
use crate::column::{Blocks, Column, Prepared, Prepares, Role, Value};
use crate::crew::Crew;
use crate::crowd::Rules;
use crate::deal::Deal;
use crate::error::Error;
use crate::expiry::Epochs;
use crate::key::{ABOVE_LEVELS, Hasher, MISSING_LEVEL};
use crate::noise::Noise;
use crate::secret::Secret;
use crate::settings::{MOST_LEVELS, Rule, Settings, check_z};
use crate::shard::{Counted, Holdings, Now, Shard};
use crate::slab::Entry;
use crate::slot::Key;

/// Exact z-anonymity over a stream, in O(z) memory for each attribute.
///
/// An observation (time, user, attribute) is released if at least z distinct users, its own among
/// them, showed the attribute within the window, and veiled otherwise:
///
/// ```text
///   clock - window                          clock = the attribute's largest time
/// --------|------------------------------------|------> time
///         ^ counts (the window is closed)      ^ counts
/// ```
///
/// ```
/// # use zveil_core::{Gate, Secret, Settings, Value};
/// # fn main() -> Result<(), zveil_core::Error> {
/// let mut gate = Gate::new(Settings::new(2, 60), Secret::random()?)?;
/// let page = Value::Text(b"example.org");
/// assert!(!gate.observe(0, Some(Value::Text(b"ada")), Some(page)));
/// assert!(gate.observe(60, Some(Value::Text(b"bob")), Some(page)));
/// assert!(!gate.observe(121, Some(Value::Text(b"bob")), Some(page)));
/// # Ok(())
/// # }
/// ```
pub struct Gate {
    pub(crate) settings: Settings,
    pub(crate) secret: Secret,
    pub(crate) hasher: Hasher,
    pub(crate) rules: Rules,
    pub(crate) crew: Crew,
    pub(crate) epochs: Epochs,
    pub(crate) admission: Admission,
    pub(crate) deal: Deal,
    pub(crate) shards: Vec<Shard>,
    pub(crate) observed: u64,
    pub(crate) released: u64,
    pub(crate) refused_before: u64,
    /// Only where someone asked for it. No part of a snapshot.
    pub(crate) census: Option<Census>,
    /// Where threads write what they decide.
    pub(crate) others: Vec<Vec<i8>>,
}

/// What a gate has done and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub observed: u64,
    pub released: u64,
    pub late: u64,
    pub future: u64,
    pub invalid: u64,
    pub refused: u64,
    pub attributes: u64,
    pub entries: u64,
    pub bytes: u64,
    /// The gate's clock; `None` before the first observation.
    pub clock: Option<i64>,
}

/// How many users an attribute has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrowdSize {
    /// Tells it apart from others, under the gate's secret.
    pub attribute: u64,
    pub users: usize,
    /// What they were counted in: the window; or less, if no more users are remembered.
    pub span: i64,
}

/// As many users as no attribute has: what a closed gate needs.
const CLOSED: usize = usize::MAX / 2;

impl Gate {
    pub fn new(settings: Settings, secret: Secret) -> Result<Self, Error> {
        settings.check()?;
        let limit = settings.memory_limit.map(|limit| limit / settings.threads);
        let shards = (0..settings.threads)
            .map(|_| {
                let noise = settings.noise.map(|noise| Noise::new(noise, &secret));
                Shard::new(limit, noise)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            crew: Crew::new(settings.threads),
            hasher: Hasher::new(&secret),
            rules: Rules::new(settings.z, settings.z_max, settings.window),
            epochs: Epochs::new(settings.window, settings.lateness),
            admission: Admission::new(&settings),
            deal: Deal::even(settings.threads),
            shards,
            settings,
            secret,
            observed: 0,
            released: 0,
            refused_before: 0,
            census: None,
            others: Vec::new(),
        })
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Sets z anew, on every attribute at once; opens a gate that was closed.
    pub fn set_z(&mut self, z: usize) -> Result<(), Error> {
        check_z(z, self.settings.largest_z())?;
        self.need(z);
        self.settings.z = z;
        Ok(())
    }

    /// Releases nothing from here on, and counts everyone as before; until z is set anew.
    pub fn close(&mut self) {
        self.need(CLOSED);
    }

    pub fn is_closed(&self) -> bool {
        self.rules.z == CLOSED
    }

    fn need(&mut self, z: usize) {
        for shard in &mut self.shards {
            shard.void(z > self.rules.z);
        }
        self.rules = Rules::new(z, self.settings.z_max, self.settings.window);
    }

    /// The largest time taken; `None` before the first.
    pub fn clock(&self) -> Option<i64> {
        Some(self.admission.clock).filter(|clock| *clock != i64::MIN)
    }

    /// Counts the users of all observations from here on, about.
    pub fn count_users(&mut self) {
        match &mut self.census {
            Some(census) => census.clear(),
            None => self.census = Some(Census::new()),
        }
    }

    /// What the count of users stands on, to go on from elsewhere.
    pub fn census(&self) -> Option<&[u8]> {
        self.census.as_ref().map(Census::registers)
    }

    /// Counts users as if those of another gate, of the same secret, had been counted here; false
    /// where that cannot be.
    pub fn resume_census(&mut self, registers: &[u8]) -> bool {
        self.count_users();
        self.census.as_mut().is_some_and(|census| census.resume(registers))
    }

    /// How many users there were since [`Gate::count_users`], to a few percent.
    pub fn users(&self) -> Option<f64> {
        self.census.as_ref().map(Census::estimate)
    }

    /// The attributes with at least so many users in the window up to the gate's clock. No more than
    /// z_max of them are remembered: of those that have as many, it says how long it took them.
    pub fn crowds(&self, least: usize, mut take: impl FnMut(CrowdSize)) {
        let clock = self.admission.clock;
        let (least, floor) = (least.max(1), self.rules.floor(clock));
        for shard in &self.shards {
            shard.crowds(least, floor, &self.rules, |attribute, users, since| {
                let span = since.map_or(self.settings.window, |since| clock.saturating_sub(since));
                take(CrowdSize { attribute, users, span });
            });
        }
    }

    /// Decides one observation. A missing user, attribute or time (the smallest number) is veiled.
    pub fn observe(&mut self, time: i64, user: Option<Value>, attribute: Option<Value>) -> bool {
        let hash = match &attribute {
            Some(attribute) => self.hasher.attribute(attribute),
            None => None,
        };
        let key = Key::new(hash.unwrap_or(0), hash.unwrap_or(0));
        // While the user is hashed under this attribute.
        self.shards[self.deal.shard(key)].prefetch_slot(key.hash);
        self.observed += 1;
        if let (Some(census), Some(user)) = (&mut self.census, user) {
            census.take_one(&self.hasher, user);
        }
        let user = match (hash, &user) {
            (Some(hash), Some(user)) => self.hasher.user_under(user, hash),
            _ => None,
        };
        let before = self.admission.clock;
        let admitted = self.admission.admit(time, user.is_some());
        let Some(user) = user.filter(|_| admitted != Admitted::No) else { return false };
        let released = self.count(key, Entry { user, time }, admitted);
        self.released += u64::from(released);
        self.reclaim(before, key);
        released
    }

    /// Decides one observation with several levels, coarsest first, and says which is released.
    pub fn observe_levels(
        &mut self,
        time: i64,
        user: Option<Value>,
        levels: &[Option<Value>],
    ) -> Result<Option<usize>, Error> {
        check_levels(levels.len())?;
        if let (Some(census), Some(user)) = (&mut self.census, user) {
            census.take_one(&self.hasher, user);
        }
        let user = user.and_then(|value| self.hasher.block(value, Role::User));
        let (there, hashes) = self.level_hashes(levels);
        self.observed += 1;
        let (Some(user), true) = (user, there.contains(&true)) else {
            self.admission.admit(time, false);
            return Ok(None);
        };
        let before = self.admission.clock;
        let admitted = self.admission.admit(time, true);
        if admitted == Admitted::No {
            return Ok(None);
        }
        let rule = self.settings.rule;
        let coarsest = Key::new(hashes[0], hashes[0]);
        let shard = self.deal.shard(coarsest);
        let released = walk(rule, hashes.len(), |level| {
            if !there[level] {
                return Counted::Veiled;
            }
            let key = Key::new(hashes[level], hashes[0]);
            let entry = Entry { user: self.hasher.user(user, key.hash), time };
            let released = self.count(key, entry, admitted);
            self.shards[shard].counted(released, entry, &self.rules)
        });
        self.released += u64::from(released.is_some());
        self.reclaim(before, coarsest);
        Ok(released)
    }

    fn count(&mut self, key: Key, entry: Entry, admitted: Admitted) -> bool {
        let epoch = self.epochs.at(self.admission.clock) as u32;
        let now = Now { epoch, in_order: admitted == Admitted::InOrder };
        let shard = self.deal.shard(key);
        self.shards[shard].observe(key, entry, now, &self.rules)
    }

    /// Lets the hand of one shard move, by the clock as it stood before this observation.
    fn reclaim(&mut self, clock: i64, key: Key) {
        let shard = self.deal.shard(key);
        self.shards[shard].reclaim(self.epochs.at(clock), 1);
    }

    /// How many users an attribute needs at this time: z, and what noise adds.
    pub fn threshold(&self, time: i64, attribute: Value) -> Option<usize> {
        let mut hash = [self.hasher.block(attribute, Role::Attribute)?];
        self.hasher.attributes(&mut hash, None);
        Some(self.threshold_of(hash[0], time))
    }

    /// The same for each level of an observation, coarsest first.
    pub fn level_thresholds(&self, time: i64, levels: &[Option<Value>]) -> Vec<usize> {
        self.level_hashes(levels).1.iter().map(|hash| self.threshold_of(*hash, time)).collect()
    }

    /// Hashes a whole column once, for [`Gate::observe_many`] and whatever else tells values apart.
    pub fn prepare_all(&self, column: &dyn Column, role: Role, into: &mut Prepared) {
        let rows: Vec<u32> = (0..u32::try_from(column.len()).unwrap_or(u32::MAX)).collect();
        let Prepared { blocks, valid, misses } = into;
        // All of them are written anew.
        blocks.resize(rows.len(), 0);
        valid.clear();
        valid.resize(rows.len(), true);
        let hasher = &self.hasher;
        column.blocks(Blocks { hasher, role, start: 0, rows: &rows, out: blocks, valid });
        *misses = valid.contains(&false);
    }

    fn threshold_of(&self, hash: u128, time: i64) -> usize {
        let key = Key::new(hash, hash);
        // All shards draw alike.
        self.settings.z + self.shards[0].more(key.hash, time)
    }

    /// Which levels there are, and the hash of each.
    pub(crate) fn level_hashes(&self, levels: &[Option<Value>]) -> (Vec<bool>, Vec<u128>) {
        let mut above = ABOVE_LEVELS;
        levels
            .iter()
            .map(|level| {
                let block = level.and_then(|value| self.hasher.block(value, Role::Attribute));
                let mut hash = [block.unwrap_or(MISSING_LEVEL)];
                self.hasher.attributes(&mut hash, Some(&[above]));
                above = hash[0];
                (block.is_some(), above)
            })
            .unzip()
    }

    /// Erases one user from every attribute and says how many they were in.
    ///
    /// Of each of these attributes the other z_max - 1 users seen last remain, or all there are in
    /// the window if they are fewer. Its clock stays, as a time without a user.
    pub fn forget(&mut self, user: Value) -> usize {
        let Some(user) = self.hasher.block(user, Role::User) else { return 0 };
        let Self { shards, hasher, rules, .. } = self;
        shards.iter_mut().map(|shard| shard.forget(|hash| hasher.user(user, hash), rules)).sum()
    }

    /// Makes room for so many attributes that will be imported: a little more than a shard's share.
    pub(crate) fn reserve(&mut self, attributes: usize) {
        let share = attributes / self.shards.len();
        // The number comes from a file: it may be any.
        let share = share.saturating_add(share / 16);
        self.shards.iter_mut().for_each(|shard| shard.reserve(share));
    }

    /// Counts entries one by one: for a look now and then, not for each event.
    pub fn stats(&self) -> Stats {
        let entries: usize = self.shards.iter().map(Shard::entries).sum();
        Stats { entries: entries as u64, ..self.counts() }
    }

    /// The same at once, without the entries.
    pub fn counts(&self) -> Stats {
        let mut sum = Holdings::default();
        let mut refused = self.refused_before;
        for shard in &self.shards {
            let part = shard.holdings();
            sum.attributes += part.attributes;
            sum.bytes += part.bytes;
            refused += shard.refused;
        }
        Stats {
            observed: self.observed,
            released: self.released,
            late: self.admission.late,
            future: self.admission.future,
            invalid: self.admission.invalid,
            refused,
            attributes: sum.attributes as u64,
            entries: 0,
            bytes: sum.bytes as u64,
            clock: self.clock(),
        }
    }
}

impl Prepares for Gate {
    fn prepare(&self, value: Value, role: Role) -> Option<Value<'static>> {
        self.hasher.block(value, role).map(Value::Prepared)
    }
}

pub(crate) fn check_levels(levels: usize) -> Result<(), Error> {
    if (1..=MOST_LEVELS).contains(&levels) {
        return Ok(());
    }
    let rule = format!("expected 1 to {MOST_LEVELS} levels, coarsest first");
    Err(Error::Setting { parameter: "levels", rule, got: levels.to_string() })
}

/// Goes through the levels as the rule has it; `count` counts the user at a level.
#[inline(always)]
pub(crate) fn walk(
    rule: Rule,
    levels: usize,
    mut count: impl FnMut(usize) -> Counted,
) -> Option<usize> {
    match rule {
        Rule::FallThrough => {
            for level in (0..levels).rev() {
                match count(level) {
                    Counted::Released => return Some(level),
                    Counted::Veiled => {}
                    // Whether the user fell through is not known, so they must not count below.
                    Counted::Unknown => return None,
                }
            }
            None
        }
        Rule::Fixed(level) => {
            let level = usize::from(level);
            (level < levels && count(level) == Counted::Released).then_some(level)
        }
        Rule::Authors => {
            let mut finest = None;
            for level in 0..levels {
                if count(level) == Counted::Released {
                    finest = Some(level);
                }
            }
            finest
        }
    }
}
