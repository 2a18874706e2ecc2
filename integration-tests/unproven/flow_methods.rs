//! Methods of `tests/hazards/flow.rs` that only these tests need.

impl Flow {
    pub fn with(self, config: MirrorConfig) -> Flow {
        Flow { config, ..self }
    }

    pub fn ledger(&self) -> String {
        format!("verbatim.{}.ledger.internal", self.name)
    }

    pub fn wait_until_halted(&self, topic: &str, partition: i32, reason: &str) -> Row {
        wait_for(&format!("{topic} {partition} to halt: {reason}"), PATIENCE, || {
            let row = self.row(topic, partition);
            (row.state == "halted" && row.reason.starts_with(reason)).then_some(row)
        })
    }

    pub fn ledger_ends(&self) -> Vec<i64> {
        let partitions = self.target_admin.partition_count(&self.ledger()).unwrap().expect("a ledger");
        let end = |partition| {
            let partition = i32::try_from(partition).expect("a partition");
            self.target_admin.watermarks(&self.ledger(), partition).unwrap().1
        };
        (0..partitions).map(end).collect()
    }
}
