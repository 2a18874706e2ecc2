use crate::plan::FaultClass;
use crate::run::Planted;
use kafka_model::BrokerFaults;
use runtime_sim::{ClientMutants, SimMutants};
use verbatim_core::fault::Mutant as OfMirror;

/// A bug that can be planted.
#[derive(Clone, Copy)]
pub struct Mutant {
    pub number: u32,
    pub name: &'static str,
    /// What it does wrong, and what comes of it.
    pub what: &'static str,
    pub expected: Expected,
    /// Classes of faults that are on in every plan of its hunts, since it has to do with them.
    pub on: &'static [FaultClass],
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
    ($($number:literal $name:literal $expected:expr, $what:literal,
        $([$($on:ident),+])? $($part:ident.$switch:ident)&+;)*
    ) => {
        /// Every mutant, by its number.
        pub const TABLE: &[Mutant] = &[
            $(Mutant {
                number: $number,
                name: $name,
                what: $what,
                expected: $expected,
                on: &[$($(FaultClass::$on),+)?],
                plant: |planted| {
                    $(plant!(planted, $part.$switch);)+
                },
            },)*
        ];
    };
}

macro_rules! plant {
    ($planted:ident, mirror.$mutant:ident) => {
        $planted.mirror = Some(OfMirror::$mutant)
    };
    ($planted:ident, $part:ident.$switch:ident) => {
        $part($planted).$switch = true
    };
}

use Expected::{Caught, Harmless, Unseen};

mutants! {
    1 "settles-what-was-read" Caught,
        "KIP-3's own bug: the position of all that was read is settled, while records still wait to be sent",
        mirror.SettlesWhatWasRead;
    2 "progress-follows-alone" Caught,
        "records are committed first, and their progress in a transaction of its own",
        client.progress_follows_alone;
    3 "position-one-too-far" Caught,
        "the position is that of the last record plus two",
        mirror.PositionOneTooFar;
    3 "position-one-short" Caught,
        "the position is that of the last record",
        mirror.PositionOneShort;
    4 "ledger-read-before-fencing" Caught,
        "the ledger is read before the transactional id is initialised",
        client.ledger_is_read_before_fencing;
    5 "ledger-read-uncommitted" Caught,
        "the ledger is read with what open and aborted transactions left in it",
        client.ledger_is_read_uncommitted;
    6 "ids-of-the-process" Caught,
        "every process has transactional ids of its own, so nobody fences anybody",
        client.transactional_ids_of_the_process;
    8 "rewinds-nothing" Caught,
        "after an abort, reading goes on from where it stood",
        mirror.RewindsNothing;
    8 "rewinds-one-partition" Caught,
        "after an abort, only the first partition is read again",
        mirror.RewindsOnePartition;
    9 "lost-lanes-commit"
        Harmless("fencing decides who may commit, never the group"),
        "a lane that was lost settles what is open, as if it had been recalled",
        mirror.LostLanesCommit;
    10 "unknown-is-not-settled" Caught,
        "a commit of unknown outcome is taken for one that failed, and its records are sent again from memory",
        [TransactionTrouble] mirror.UnknownIsNotSettled;
    11 "unknown-is-settled" Caught,
        "a commit of unknown outcome is taken for one that succeeded, and the lane goes on from memory",
        [TransactionTrouble] mirror.UnknownIsSettled;
    13 "refusals-not-counted" Caught,
        "a batch that the target or the client library refused does not count against its run",
        mirror.RefusalsAreNotCounted & client.prepares_unseen;
    16 "produces-what-is-given-up"
        Harmless("what is produced is settled like all else; the hand-over only takes longer"),
        "a lane that is to be given up goes on to produce what it had buffered",
        mirror.ProducesWhatIsGivenUp;
    16 "buffers-outlive-their-attempt" Caught,
        "what was buffered before a rewind is produced after it",
        mirror.BuffersOutliveTheirAttempt & client.batches_outlive_their_attempt;
    17 "settles-buffers-that-it-drops" Caught,
        "a lane that is given up settles the position of what it had buffered, and drops that",
        mirror.SettlesBuffersThatItDrops;
    21 "out-of-range-from-start" Caught,
        "a position that the source no longer has is replaced by the log's start",
        [Retention] mirror.OutOfRangeGoesOnFromStart;
    21 "out-of-range-from-end" Caught,
        "a position that the source no longer has is replaced by the log's end",
        [Retention] mirror.OutOfRangeGoesOnFromEnd;
    22 "continues-topics-made-anew" Caught,
        "a topic that was deleted and made again is gone on with at the old position",
        [TopicsRecreated, TargetTopics] mirror.ContinuesTopicsMadeAnew;
    23 "truncation-ignored" Caught,
        "a log that was cut back is waited for to grow up to the position again",
        [UncleanElection] mirror.TruncationIsIgnored;
    24 "holes-are-gaps" Caught,
        "offsets without records, of markers or compaction, are told as lost",
        mirror.HolesAreGaps;
    25 "markers-not-passed" Caught,
        "the position never passes trailing markers",
        mirror.MarkersAreNotPassed;
    26 "source-read-uncommitted" Caught,
        "the source is read with what open and aborted transactions hold",
        client.source_is_read_uncommitted;
    29 "tombstones-become-empty" Caught,
        "records without a value are copied with an empty one",
        client.tombstones_become_empty;
    29 "headers-dropped" Caught,
        "headers are left out",
        client.headers_are_dropped;
    29 "timestamps-renewed" Caught,
        "records get the time at which they are copied",
        client.timestamps_are_renewed;
    30 "skips-oversized-records" Caught,
        "a record that the target does not take is left out without a word",
        mirror.SkipsOversizedRecords;
    32 "unable-owners-stay" Caught,
        "an owner that cannot work keeps its lanes",
        [CutOff] mirror.UnableOwnersStay;
    33 "stops-without-settling" Caught,
        "a stop leaves open what is open, and says that it is done",
        [Stop] mirror.StopsWithoutSettling;
    34 "one-halt-restarts-all" Caught,
        "one partition that cannot go on has its whole lane taken again, for ever",
        mirror.OneHaltRestartsAll;
    35 "stopped-early-is-done" Caught,
        "a bounded run that is told to stop says that it is done",
        [Stop] mirror.StoppedEarlyIsDone;
    35 "halted-is-done" Caught,
        "a bounded run says that it is done although partitions halted",
        [Retention, TopicsDeleted] mirror.HaltedIsDone;
    36 "sequence-reset" Caught,
        "sequence numbers begin anew when a leader moves, and the broker takes new records for old ones",
        client.sequence_resets_on_leader_change;
    38 "time-out-is-not-written" Caught,
        "a produce that timed out is sent anew under new sequence numbers",
        [ResponseLost, PartialSend, LateRequests] client.timed_out_is_not_written;
    40 "aborted-is-read" Caught,
        "aborted records of the source are handed to the mirror",
        client.aborted_records_are_read;
    41 "server-error-is-success" Caught,
        "UNKNOWN_SERVER_ERROR in answer to the end of a transaction counts as success",
        [TransactionTrouble] client.unknown_server_error_is_success;
    43 "acknowledged-before-replicated" Caught,
        "acks=all is answered before the followers have the records, and a leader is lost",
        [BrokerCrashAtMoment] target.acknowledges_before_replication;
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
        [TransactionTrouble, PartialSend] client.retried_commit_is_clean;
    57 "settles-unacknowledged" Caught,
        "ledger records follow before the run's records are acknowledged",
        mirror.SettlesUnacknowledged & client.settles_in_flight;
    58 "replay-ends-at-the-end" Caught,
        "a replay of the ledger ends at the end of the partition, not at the lane's own claim",
        client.replay_ends_at_end_of_partition;
    59 "invalid-state-is-abortable" Caught,
        "INVALID_TXN_STATE is mended by an abort, and the lane goes on from memory",
        [TransactionTrouble] client.invalid_state_is_abortable;
    59 "unknown-is-aborted"
        Harmless("an abort counts only if all that was sent before it was answered, so the lane is taken again"),
        "whatever is unknown is aborted by the same producer, which goes on from memory",
        mirror.UnknownIsAborted;
    60 "lanes-from-ledger" Caught,
        "there are as many lanes as the ledger happens to have partitions",
        [AdminTool] mirror.LanesFromLedger;
    61 "later-topics-start-like-the-flow" Caught,
        "topics that appear later start where the flow was told to start, not at their beginning",
        [TopicsCreated] mirror.LaterTopicsStartLikeTheFlow;
    62 "topics-proved-at-take-only" Caught,
        "topic ids are compared when a lane is taken, and never again",
        [TopicsRecreated, TargetTopics] mirror.ProvesTopicsAtTakeOnly;
    63 "send-errors-not-counted" Caught,
        "a record that the library's queue did not take counts as acknowledged",
        client.send_errors_are_not_counted & client.prepares_unseen;
    64 "skips-oversized-batches" Caught,
        "a batch that the target does not take is left out as a whole",
        mirror.SkipsOversizedBatches;
    66 "older-attempts-count" Caught,
        "what belongs to an older attempt is believed",
        [TransactionTrouble] mirror.OlderAttemptsCount & client.batches_outlive_their_attempt;
    67 "keeps-its-size" Caught,
        "a transaction that timed out is tried again with as many records",
        mirror.KeepsItsSize;
    68 "done-once-own-lanes-are" Caught,
        "a bounded run is done once the lanes of this instance are",
        mirror.DoneOnceOwnLanesAre;
    69 "positions-without-epoch" Caught,
        "positions are read from without their leader epoch, so truncation while nobody read goes unnoticed",
        [UncleanElection] mirror.PositionsWithoutEpoch;
    69 "start-without-epoch" Caught,
        "positions are assigned without their leader epoch, so truncation goes unnoticed",
        [UncleanElection] client.start_without_epoch;
    70 "retakes-when-fenced"
        Unseen("the group soon tells one of the two, and until then they only waste work"),
        "a lane that another instance took is taken back at once",
        mirror.RetakesWhenFenced;
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
