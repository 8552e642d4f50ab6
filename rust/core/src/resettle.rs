//! What may be told to a gate anew, with all that it has seen.

use crate::crowd::Rules;
use crate::error::Error;
use crate::gate::Gate;
use crate::noise::{Noise, NoiseSettings};
use crate::settings::Settings;

/// Settings that a state can follow: no answer that it has given stands for another one.
#[derive(Clone, Debug)]
pub struct Resettled {
    /// Up to the z_max that was stated at the start, less the noise.
    pub z: usize,
    /// Not more than before: what later records would be counted with is forgotten.
    pub lateness: i64,
    pub max_future: Option<i64>,
    pub memory_limit: Option<usize>,
    pub noise: Option<NoiseSettings>,
}

impl Gate {
    /// Goes on under other settings; the state stays as it is. A state above a lower memory limit
    /// stays whole, and nothing new is taken until there is room.
    pub fn resettle(&mut self, told: &Resettled) -> Result<(), Error> {
        let Resettled { z, lateness, max_future, memory_limit, noise } = *told;
        let before = &self.settings;
        if lateness > before.lateness {
            let rule = format!("expected at most {}, as it was", before.lateness);
            return Err(Error::Setting { parameter: "lateness", rule, got: lateness.to_string() });
        }
        let settings = Settings { z, lateness, max_future, memory_limit, noise, ..before.clone() };
        settings.check()?;
        let is_drawn_anew = noise != before.noise;
        // What holds now is another z than was told where the gate is closed.
        let now = self.rules.z;
        let is_other = is_drawn_anew || z != now;
        let limit = memory_limit.map(|limit| limit / settings.threads);
        for shard in &mut self.shards {
            shard.set_limit(limit);
            if is_drawn_anew {
                shard.set_noise(noise.map(|noise| Noise::new(noise, &self.secret)));
            }
            if is_other {
                shard.void(is_drawn_anew || z > now);
            }
        }
        // The epochs stay as they were: a slot holds the number of one.
        self.admission.resettle(&settings);
        self.rules = Rules::new(z, settings.z_max, settings.window);
        self.settings = settings;
        Ok(())
    }

    /// Remembers at most so many attributes at a time from now on; new ones are refused past that.
    pub fn limit_attributes(&mut self, most: usize) {
        let each = most.div_ceil(self.shards.len()).max(1);
        for shard in &mut self.shards {
            shard.limit_attributes(each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Value;
    use crate::secret::Secret;

    const PAGE: Option<Value> = Some(Value::Text(b"page"));

    fn gate(z: usize, z_max: usize) -> Gate {
        let settings = Settings { z_max, max_future: None, ..Settings::new(z, 100) };
        Gate::new(settings, Secret::new([7; 32])).unwrap()
    }

    fn told(z: usize) -> Resettled {
        Resettled { z, lateness: 100, max_future: None, memory_limit: None, noise: None }
    }

    #[test]
    fn what_was_seen_counts_under_another_z() {
        let mut gate = gate(3, 3);
        for user in [b"a", b"b"] {
            assert!(!gate.observe(1, Some(Value::Text(user)), PAGE));
        }
        gate.resettle(&told(2)).unwrap();
        assert!(gate.observe(2, Some(Value::Text(b"a")), PAGE));
        gate.resettle(&told(3)).unwrap();
        assert!(!gate.observe(3, Some(Value::Text(b"a")), PAGE));
        assert!(gate.observe(4, Some(Value::Text(b"c")), PAGE));
        assert!(gate.resettle(&told(4)).is_err());
        assert!(gate.resettle(&Resettled { lateness: 101, ..told(3) }).is_err());
    }

    #[test]
    fn a_lower_lateness_holds_at_once() {
        let mut gate = gate(1, 1);
        assert!(gate.observe(100, Some(Value::Text(b"a")), PAGE));
        assert!(gate.observe(50, Some(Value::Text(b"b")), PAGE));
        gate.resettle(&Resettled { lateness: 10, ..told(1) }).unwrap();
        assert!(!gate.observe(50, Some(Value::Text(b"c")), PAGE));
        assert!(gate.observe(95, Some(Value::Text(b"c")), PAGE));
    }

    #[test]
    fn new_attributes_are_refused_past_the_most() {
        let mut gate = gate(1, 1);
        gate.limit_attributes(2);
        let shown: Vec<bool> = (0_i64..5)
            .map(|number| gate.observe(1, Some(Value::Text(b"a")), Some(Value::Integer(number))))
            .collect();
        assert_eq!(shown, [true, true, false, false, false]);
        assert!(gate.observe(1, Some(Value::Text(b"a")), Some(Value::Integer(0))));
        assert_eq!((gate.counts().attributes, gate.counts().refused), (2, 3));
    }
}
