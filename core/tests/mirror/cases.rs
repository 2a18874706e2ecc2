use crate::kit::{Clusters, Kit};

#[test]
fn a_small_flow_is_copied_to_its_end() {
    let mut clusters = Clusters::new();
    clusters.source_topic("orders", 3);
    clusters.source_topic("payments", 1);
    for partition in 0..3 {
        clusters.append("orders", partition, 25);
    }
    clusters.append_holes("orders", 1, 3);
    clusters.append("payments", 0, 1);
    Kit::from(clusters).run_to_done();
}
