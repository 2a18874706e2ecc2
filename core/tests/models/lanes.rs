use kafka_types::SourcePartition;
use proptest::prelude::*;
use verbatim_core::lane::lane_of;

proptest! {
    /// Whatever its name, a topic spreads over the lanes as evenly as whole numbers allow; growing it moves nothing.
    #[test]
    fn topics_spread_evenly_and_grow_in_place(topic in "[a-zA-Z0-9._-]{1,40}", partitions in 1i32..60, lanes in 1u32..20) {
        let mut counts = vec![0u32; lanes as usize];
        for partition in 0..partitions {
            let lane = lane_of(&SourcePartition::new(topic.as_str(), partition), lanes);
            counts[lane.0 as usize] += 1;
            let next = lane_of(&SourcePartition::new(topic.as_str(), partition + 1), lanes);
            prop_assert_eq!(next.0, (lane.0 + 1) % lanes);
        }
        let (least, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
        prop_assert!(most - least <= 1, "{:?}", counts);
    }
}
