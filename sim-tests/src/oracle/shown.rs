use super::invariants::status_true::{self, Ends, Facts, Said};
use super::{Oracle, Violation};
use kafka_model::{Cluster, Millis};
use kafka_types::TopicPartition;

impl Oracle {
    /// Judges what `status` shows of each partition at a moment.
    pub fn judge_status(&mut self, now: Millis, rows: &[Said], source: &Cluster, target: &Cluster) {
        let broken: Vec<Violation> = rows
            .iter()
            .flat_map(|said| status_true::check(now, said, &self.facts(said, source, target)))
            .collect();
        broken.into_iter().for_each(|it| self.report(it));
    }

    fn facts(&self, said: &Said, source: &Cluster, target: &Cluster) -> Facts {
        let place = &said.partition;
        let tp = TopicPartition { topic: place.topic.clone(), partition: place.partition };
        let view = source.partition_view(&tp);
        let standing = &self.judge.standing;
        let progress = standing.partitions.get(place);
        let record = standing.topics.get(&place.topic);
        let start = record.map(|it| it.starts.get(place.partition.index()).map_or(0, |start| start.offset));
        let decided_of = progress.map(|it| it.source_id).or(record.map(|it| it.source_id));
        let is_of_another = |id| decided_of.is_some_and(|of| of != id);
        let is_unfit = record.is_some_and(|it| it.target.as_ref().is_some_and(|pin| pin.unfit.is_some()));
        Facts {
            log: view
                .as_ref()
                .map(|view| Ends { start: view.log_start_offset, high_watermark: view.high_watermark }),
            position: progress.map(|it| it.next).or(start),
            is_of_another_topic: view.is_some_and(|view| is_of_another(view.topic_id)),
            is_halted: progress.is_some_and(|it| it.halted.is_some()) || is_unfit,
            has_target: progress.is_some() || record.is_some_and(|it| it.target.is_some()),
            owner: standing.owners.get(&said.lane).map(|owner| owner.incarnation.clone()),
            is_shown: [0, said.lane].into_iter().all(|lane| self.ledger_is_shown(lane, target)),
        }
    }

    /// Whether readers of a lane's ledger see all that was decided of it.
    fn ledger_is_shown(&self, lane: i32, target: &Cluster) -> bool {
        let tp = TopicPartition::new(self.judge.flow.ledger.as_str(), lane);
        target.partition_view(&tp).is_none_or(|view| view.last_stable_offset == view.log_end_offset)
    }
}
