//! What a run will be, as data: drawn from a seed, then run. So it can be saved, cut by hand and run again.

mod action;
mod actions;
mod deaths;
mod draw;
mod flow;
mod generate;
mod later;
mod latest;
mod odd_copy;
mod producers;
mod profile;
mod rare_faults;
mod rarities;
mod slow_target;

pub use action::{Action, BrokerNumber, Cluster, Right, TimedAction, Urgency};
pub use deaths::generate_deaths;
pub use draw::Draw;
pub use flow::FlowPlan;
pub use generate::{generate, generate_as_before, generate_as_later, generate_with};
pub use latest::LONG_PAUSE_MS;
pub use odd_copy::OddCopy;
pub use producers::{ProducerKind, ProducerPlan};
pub use profile::{FaultClass, Profile};
pub use rarities::Rarities;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Of all that the run itself draws: delays, losses, the scheduler's picks.
    pub seed: u64,
    pub profile: Profile,
    pub flow: FlowPlan,
    /// Those that exist at the source when the first instance starts.
    pub topics: Vec<TopicPlan>,
    pub producers: Vec<ProducerPlan>,
    #[serde(default)]
    pub rare: Rarities,
    /// In the order of their time.
    pub actions: Vec<TimedAction>,
    /// Until here the workload goes on and faults strike.
    pub active_ms: i64,
    /// So long the mirror may take to catch up afterwards.
    pub heal_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicPlan {
    pub name: String,
    pub partitions: i32,
    pub is_compacted: bool,
}

impl Plan {
    /// Topics to which clients lose their right at some time.
    pub fn denied_topics(&self) -> impl Iterator<Item = (Cluster, &str)> {
        self.actions.iter().filter_map(|timed| match &timed.action {
            Action::DenyTopic { cluster, topic, is_denied: true } => Some((*cluster, topic.as_str())),
            _ => None,
        })
    }

    /// Those that end what outlasts the time in which faults strike.
    pub fn late_actions(&self) -> impl Iterator<Item = &TimedAction> {
        self.actions.iter().filter(|timed| self.active_ms <= timed.at_ms)
    }

    /// Rights of other kinds that clients lose.
    pub fn denied_rights(&self) -> impl Iterator<Item = Right> {
        self.actions.iter().filter_map(|timed| match timed.action {
            Action::DenyRight { right, is_denied: true } => Some(right),
            _ => None,
        })
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a plan has text keys and finite numbers only")
    }

    pub fn from_json(text: &str) -> Result<Plan, serde_json::Error> {
        serde_json::from_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_survive_their_text() {
        for seed in 0..200 {
            let plan = generate(seed);
            assert_eq!(Plan::from_json(&plan.to_json()).expect("it was just written"), plan);
            assert!(plan.actions.is_sorted_by_key(|action| action.at_ms), "{seed}");
        }
    }

    #[test]
    fn some_seeds_are_without_faults_and_none_has_all() {
        let plans: Vec<Plan> = (0..300).map(generate).collect();
        let quiet = plans.iter().filter(|plan| plan.profile.is_quiet()).count();
        assert!((10..100).contains(&quiet), "{quiet}");
        let classes = |plan: &Plan| plan.profile.rates.len();
        assert!(plans.iter().all(|plan| classes(plan) < FaultClass::ALL.len()));
        assert!(plans.iter().map(classes).sum::<usize>() / plans.len() > 5);
    }
}
