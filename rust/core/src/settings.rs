//! What a gate is told at its start.

use crate::codec::{Body, Out, Outcome};
use crate::error::{Error, SnapshotError};
use crate::noise::NoiseSettings;
use crate::shard::SMALLEST_SHARD;
use crate::slab::LARGEST;

/// How the levels of one observation are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A level counts the users whose observation was veiled at every finer level.
    FallThrough,
    /// One level, chosen beforehand for all; the others are not looked at. 0 is the coarsest.
    Fixed(u8),
    /// Every level counts everyone. As the authors' program does it; see the limits in the docs.
    Authors,
}

/// Times are nanoseconds; the smallest 64-bit number is no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub z: usize,
    /// The largest z that may be set later: so many users are kept for each attribute.
    pub z_max: usize,
    pub window: i64,
    pub lateness: i64,
    /// How far past the wall clock a time may be.
    pub max_future: Option<i64>,
    pub rule: Rule,
    pub memory_limit: Option<usize>,
    pub threads: usize,
    pub noise: Option<NoiseSettings>,
}

/// Most levels of one observation.
pub const MOST_LEVELS: usize = 32;

/// Most threads, and so shards: the selector of a shard has 8 bits.
pub const MOST_THREADS: usize = 64;

/// Largest z_max: a block of 2.5 times as many entries is the largest there is.
pub const LARGEST_Z: usize = LARGEST / 5 * 2;

impl Settings {
    pub fn new(z: usize, window: i64) -> Self {
        Self {
            z,
            z_max: z,
            window,
            lateness: window,
            max_future: Some(86_400_000_000_000),
            rule: Rule::FallThrough,
            memory_limit: None,
            threads: 1,
            noise: None,
        }
    }

    /// The largest z that may be set: noise needs the users past it.
    pub fn largest_z(&self) -> usize {
        self.z_max - self.noise.map_or(0, |noise| noise.most)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check_z(self.z, self.z_max.max(1).max(self.z))?;
        in_range("z_max", "at least z and at most", self.z_max, self.z, LARGEST_Z)?;
        if let Some(NoiseSettings { most, period }) = self.noise {
            in_range("noise", "from 0 to z_max - z, here", most, 0, self.z_max - self.z)?;
            in_range("noise_period", "nanoseconds from 1 to", period.unwrap_or(1), 1, i64::MAX)?;
        }
        in_range("window", "nanoseconds from 0 to", self.window, 0, i64::MAX)?;
        in_range("lateness", "nanoseconds from 0 to", self.lateness, 0, i64::MAX)?;
        in_range("max_future", "nanoseconds from 0 to", self.max_future.unwrap_or(0), 0, i64::MAX)?;
        in_range("threads", "from 1 to", self.threads, 1, MOST_THREADS)?;
        if let Rule::Fixed(level) = self.rule {
            in_range("fixed_level", "from 0 to", usize::from(level), 0, MOST_LEVELS - 1)?;
        }
        if let Some(limit) = self.memory_limit {
            let least = SMALLEST_SHARD * self.threads;
            if limit < least {
                return Err(Error::Setting {
                    parameter: "memory_limit",
                    rule: format!("expected at least {least} bytes (4 MiB for each thread)"),
                    got: limit.to_string(),
                });
            }
        }
        Ok(())
    }
}

/// As they are kept; threads are not, and `read` leaves them at one.
impl Settings {
    pub(crate) fn write(&self, out: &mut (impl Out + ?Sized)) -> Outcome<()> {
        out.number(self.z as u64)?;
        out.number(self.z_max as u64)?;
        out.number(self.window as u64)?;
        out.number(self.lateness as u64)?;
        out.optional(self.max_future.map(|span| span as u64))?;
        out.number(match self.rule {
            Rule::FallThrough => 0,
            Rule::Authors => 1,
            Rule::Fixed(level) => 256 + u64::from(level),
        })?;
        out.optional(self.memory_limit.map(|limit| limit as u64))?;
        out.optional(self.noise.map(|noise| noise.most as u64))?;
        let period = self.noise.and_then(|noise| noise.period);
        out.optional(period.map(|period| period as u64))
    }

    pub(crate) fn read(body: &mut impl Body) -> Outcome<Self> {
        let size = |number: u64| usize::try_from(number).map_err(|_| SnapshotError::Damaged);
        let span = |number: u64| i64::try_from(number).map_err(|_| SnapshotError::Damaged);
        Ok(Self {
            z: body.size()?,
            z_max: body.size()?,
            window: body.span()?,
            lateness: body.span()?,
            max_future: body.optional()?.map(span).transpose()?,
            rule: match body.number()? {
                0 => Rule::FallThrough,
                1 => Rule::Authors,
                fixed @ 256..512 => Rule::Fixed((fixed - 256) as u8),
                _ => return Err(SnapshotError::Damaged),
            },
            memory_limit: body.optional()?.map(size).transpose()?,
            noise: {
                let most = body.optional()?.map(size).transpose()?;
                let period = body.optional()?.map(span).transpose()?;
                most.map(|most| NoiseSettings { most, period })
            },
            threads: 1,
        })
    }
}

pub(crate) fn check_z(z: usize, z_max: usize) -> Result<(), Error> {
    in_range("z", "from 1 to z_max, here", z, 1, z_max)
}

fn in_range<T: PartialOrd + ToString>(
    parameter: &'static str,
    rule: &str,
    got: T,
    least: T,
    most: T,
) -> Result<(), Error> {
    if least <= got && got <= most {
        return Ok(());
    }
    let rule = format!("expected {rule} {}", most.to_string());
    Err(Error::Setting { parameter, rule, got: got.to_string() })
}
