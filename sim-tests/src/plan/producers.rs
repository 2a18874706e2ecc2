use super::draw::Draw;
use runtime_sim::Random;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProducerKind {
    /// Never retries what it does not know the outcome of.
    Plain,
    Idempotent,
    Transactional,
}

/// Somebody who writes to the source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProducerPlan {
    pub kind: ProducerKind,
    /// Of everything that it writes and of when it does.
    pub seed: u64,
    /// Sends a minute, on average.
    pub rate: f64,
    pub records_max: i64,
    /// Of a value, now and then.
    pub bytes_max: i64,
    /// How many of its sends come in bursts.
    pub burst: f64,
    /// Of a transactional producer's transactions.
    pub abort: f64,
    /// Left open until the coordinator ends them.
    pub hang: f64,
}

impl ProducerPlan {
    pub fn draw(random: &mut Random) -> ProducerPlan {
        let kind = *random.one_of(&[
            ProducerKind::Plain,
            ProducerKind::Idempotent,
            ProducerKind::Transactional,
            ProducerKind::Transactional,
        ]);
        ProducerPlan {
            kind,
            seed: random.next(),
            rate: random.log_uniform(20.0, 200.0),
            records_max: random.log_uniform(1.0, 40.0) as i64,
            bytes_max: random.log_uniform(10.0, 100_000.0) as i64,
            burst: if random.chance(0.3) { 0.1 } else { 0.0 },
            abort: if random.chance(0.7) { random.log_uniform(0.01, 0.5) } else { 0.0 },
            hang: if random.chance(0.3) { random.log_uniform(0.005, 0.05) } else { 0.0 },
        }
    }
}
