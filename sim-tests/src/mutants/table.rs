use crate::run::Planted;
use kafka_model::BrokerFaults;
use runtime_sim::{ClientMutants, SimMutants};

/// A bug that can be planted.
#[derive(Clone, Copy)]
pub struct Mutant {
    pub number: u32,
    pub name: &'static str,
    /// What it does wrong, and what comes of it.
    pub what: &'static str,
    pub expected: Expected,
    pub plant: fn(&mut Planted),
}

/// What is to become of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A promise is seen to be broken within the budget.
    Caught,
    /// The mirror stands above it: no promise is broken, and the reason is told.
    Harmless(&'static str),
    /// Nothing that the simulation does lets it show yet, and why.
    Unseen(&'static str),
}

fn target(planted: &mut Planted) -> &mut BrokerFaults {
    &mut planted.target
}

fn source(planted: &mut Planted) -> &mut BrokerFaults {
    &mut planted.source
}

fn client(planted: &mut Planted) -> &mut ClientMutants {
    &mut planted.client
}

fn simulator(planted: &mut Planted) -> &mut SimMutants {
    &mut planted.simulator
}

macro_rules! mutants {
    ($($number:literal $name:literal $expected:expr, $what:literal, $part:ident $(. $switch:ident)+;)*) => {
        /// Every mutant outside the mirror, by its number.
        pub const TABLE: &[Mutant] = &[
            $(Mutant {
                number: $number,
                name: $name,
                what: $what,
                expected: $expected,
                plant: |planted| $part(planted)$(.$switch)+ = true,
            },)*
        ];
    };
}

use Expected::{Caught, Harmless, Unseen};

mutants! {
    36 "sequence-reset" Caught,
        "sequence numbers begin anew when a leader moves, and the broker takes new records for old ones",
        client.sequence_resets_on_leader_change;
    38 "time-out-is-not-written" Caught,
        "a produce that timed out is sent anew under new sequence numbers",
        client.timed_out_is_not_written;
    40 "aborted-is-read" Caught,
        "aborted records of the source are handed to the mirror",
        client.aborted_records_are_read;
    43 "acknowledged-before-replicated" Caught,
        "acks=all is answered before the followers have the records, and a leader is lost",
        target.acknowledges_before_replication;
    44 "duplicates-forgotten" Caught,
        "no batch is remembered, so the client library's own retries are appended again",
        target.forgets_duplicates;
    45 "open-is-stable" Caught,
        "readers of committed records of the source see those of open transactions",
        source.last_stable_offset_ignores_open_transactions;
    46 "torn-commit" Caught,
        "a commit writes no marker to the transaction's last partition",
        target.commit_marker_skips_a_partition;
    47 "pending-offsets-ignored"
        Harmless("the mirror commits no offsets: its progress is the ledger"),
        "OffsetFetch answers the last committed offset while a transaction holds a newer one",
        target.offset_fetch_ignores_pending;
    48 "no-fencing" Caught,
        "producers of an older epoch are let through",
        target.fencing_is_off;
    49 "offset-zero" Caught,
        "produce responses say offset 0",
        target.produce_answers_offset_zero;
    50 "past-the-high-watermark" Caught,
        "consumers of the source read what is not replicated, and a leader is lost",
        source.fetch_reads_past_high_watermark;
    56 "retried-commit-is-clean" Caught,
        "a commit that the client library retried by itself counts as clean (KAFKA-17754)",
        client.retried_commit_is_clean;
    58 "replay-ends-at-the-end" Caught,
        "a replay of the ledger ends at the end of the partition, not at the lane's own claim",
        client.replay_ends_at_end_of_partition;
    59 "invalid-state-is-abortable"
        Unseen("a commit with an EndTxn left unanswered is of unknown outcome already, so the lane is taken again first"),
        "INVALID_TXN_STATE is mended by an abort, and the lane goes on from memory",
        client.invalid_state_is_abortable;
    63 "send-errors-not-counted"
        Unseen("a lane's producer knows a partition before it sends there, so its queue takes every record"),
        "a record that the library's queue did not take counts as acknowledged",
        client.send_errors_are_not_counted;
    69 "start-without-epoch" Caught,
        "positions are assigned without their leader epoch, so truncation goes unnoticed",
        client.start_without_epoch;
}

/// The simulator's own, by which others can no longer be caught.
pub fn with_dead_clients_requests_cancelled(planted: &Planted) -> Planted {
    let mut planted = *planted;
    simulator(&mut planted).death_cancels_requests = true;
    planted
}

pub fn by_number(number: u32) -> Option<&'static Mutant> {
    TABLE.iter().find(|mutant| mutant.number == number)
}

impl Mutant {
    pub fn planted(&self) -> Planted {
        let mut planted = Planted::default();
        (self.plant)(&mut planted);
        planted
    }
}
