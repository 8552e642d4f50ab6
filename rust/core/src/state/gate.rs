//! A gate as it is kept: exactly as it is, secret, counters and memory, so that it goes on as it
//! would have, at its memory limit too.
//!
//! A [snapshot](crate::Gate::snapshot) says less, what an answer depends on, and can be spread over any
//! number of threads. So can this; but what a limit forbids then is something else.

use crate::codec::{Body, Out, Outcome};
use crate::deal::Deal;
use crate::error::{Error, SnapshotError};
use crate::gate::Gate;
use crate::noise::Noise;
use crate::secret::Secret;
use crate::settings::Settings;
use crate::shard::{Bounds, Shard};

pub(super) fn write(gate: &Gate, out: &mut dyn Out) -> Outcome<()> {
    out.bytes(gate.secret.bytes())?;
    gate.settings.write(out)?;
    out.number(gate.shards.len() as u64)?;
    out.number(gate.admission.clock as u64)?;
    let admission = &gate.admission;
    for counter in
        [gate.observed, gate.released, admission.late, admission.future, admission.invalid]
    {
        out.number(counter)?;
    }
    out.number(gate.refused_before)?;
    gate.shards.iter().try_for_each(|shard| shard.write(out))
}

pub(super) fn read(body: &mut impl Body, threads: usize) -> Result<Gate, Error> {
    let secret = Secret::new(body.array()?);
    let settings = Settings::read(body)?;
    let settings = Settings { threads: body.size()?, ..settings };
    // Its own words would be about settings that nobody has typed.
    let mut gate = Gate::new(settings, secret).map_err(|error| match error {
        Error::Setting { .. } => SnapshotError::Damaged.into(),
        other => other,
    })?;
    let clock = body.number()? as i64;
    gate.admission.clock = clock;
    gate.observed = body.number()?;
    gate.released = body.number()?;
    gate.admission.late = body.number()?;
    gate.admission.future = body.number()?;
    gate.admission.invalid = body.number()?;
    gate.refused_before = body.number()?;
    let counters = [gate.observed, gate.released, gate.refused_before];
    if gate.released > gate.observed || counters.iter().any(|count| *count > u64::MAX / 2) {
        return Err(SnapshotError::Damaged.into());
    }
    let (epoch, window, shards) = (gate.epochs.at(clock), gate.settings.window, gate.shards.len());
    let limit = gate.settings.memory_limit.map(|limit| limit / shards);
    for number in 0..shards {
        let noise = gate.settings.noise.map(|noise| Noise::new(noise, &gate.secret));
        let bounds = Bounds { clock, epoch, window, limit };
        gate.shards[number] = Shard::read(body, noise, bounds)?;
    }
    gate.deal = Deal::found(gate.shards.iter().map(Shard::keys)).ok_or(SnapshotError::Damaged)?;
    if threads == shards { Ok(gate) } else { spread(gate, threads) }
}

/// The same gate over another number of threads.
fn spread(gate: Gate, threads: usize) -> Result<Gate, Error> {
    let settings = Settings { threads, ..gate.settings.clone() };
    let stats = gate.stats();
    let mut other = Gate::new(settings, gate.secret.clone())?;
    other.reserve(stats.attributes as usize);
    other.admission = gate.admission;
    other.observed = gate.observed;
    other.released = gate.released;
    other.refused_before = stats.refused;
    let clock = gate.shards.iter().map(|shard| shard.refused_clock).max().unwrap_or(i64::MIN);
    let epoch = other.epochs.at(other.admission.clock) as u32;
    for shard in &mut other.shards {
        shard.refused_clock = clock;
    }
    for shard in &gate.shards {
        shard.export(&gate.rules, |key, entries| {
            let place = other.deal.shard(key);
            other.shards[place].import(key, entries, epoch);
        });
    }
    Ok(other)
}
