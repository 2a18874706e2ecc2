//! Bugs that are planted on purpose, so that tests can show that they would be noticed.
//!
//! A mirror takes its faults as a type parameter. In production that is [`Sound`], which plants nothing and says so
//! at compile time: no branch of a planted bug is in the binary. Nothing but tests makes a mirror with [`Planted`].

use std::fmt::Debug;
use std::hash::Hash;

/// Which bugs a mirror has.
pub trait Faults: Clone + Eq + Hash + Debug {
    fn plants(&self, mutant: Mutant) -> bool;
}

/// No bug but those that nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sound;

impl Faults for Sound {
    #[inline(always)]
    fn plants(&self, _: Mutant) -> bool {
        false
    }
}

/// One bug, for tests only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Planted(pub Mutant);

impl Faults for Planted {
    fn plants(&self, mutant: Mutant) -> bool {
        self.0 == mutant
    }
}

/// A bug that can be planted: each is one that a mirror has had somewhere, or might have here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// KIP-3's own bug: the position of all that was read is settled, while records still wait to be sent.
    SettlesWhatWasRead,
    /// Ledger records follow before the run's records are acknowledged.
    SettlesUnacknowledged,
    /// The position is that of the last record plus two: one record is lost with every rewind.
    PositionOneTooFar,
    /// The position is that of the last record: it is copied again with every rewind.
    PositionOneShort,
    /// After an abort, reading goes on from where it stood.
    RewindsNothing,
    /// After an abort, only the first partition is read again.
    RewindsOnePartition,
    /// A lane that was lost settles what is open, as if it had been recalled.
    LostLanesCommit,
    /// A commit of unknown outcome is taken for one that failed: a new producer goes on from memory.
    UnknownIsNotSettled,
    /// A commit of unknown outcome is taken for one that succeeded: a new producer goes on from memory.
    UnknownIsSettled,
    /// Whatever is unknown is aborted by the same producer, which goes on from memory.
    UnknownIsAborted,
    /// A batch that the target or the client library refused does not count against its run.
    RefusalsAreNotCounted,
    /// A lane that is to be given up goes on to produce what it had buffered.
    ProducesWhatIsGivenUp,
    /// What an earlier attempt had buffered is produced under the next one.
    BuffersOutliveTheirAttempt,
    /// A lane that is given up settles the position of what it had buffered, and drops that.
    SettlesBuffersThatItDrops,
    /// There are as many lanes as the ledger happens to have partitions.
    LanesFromLedger,
    /// Topics that appear later start where the flow was told to start, not at their beginning.
    LaterTopicsStartLikeTheFlow,
    /// What belongs to an older attempt is believed.
    OlderAttemptsCount,
    /// A position that the source no longer has is replaced by the log's start.
    OutOfRangeGoesOnFromStart,
    /// A position that the source no longer has is replaced by the log's end.
    OutOfRangeGoesOnFromEnd,
    /// A topic that was deleted and made again is gone on with at the old position.
    ContinuesTopicsMadeAnew,
    /// Topic ids are compared when a lane is taken, and never again.
    ProvesTopicsAtTakeOnly,
    /// A log that was cut back is waited for to grow up to the position again.
    TruncationIsIgnored,
    /// Positions are read from without their leader epoch, so that truncation while nobody read goes unnoticed.
    PositionsWithoutEpoch,
    /// Offsets without records, of markers or compaction, are told as lost.
    HolesAreGaps,
    /// The position never passes trailing markers.
    MarkersAreNotPassed,
    /// A record that the target does not take is left out without a word.
    SkipsOversizedRecords,
    /// A batch that the target does not take is left out as a whole.
    SkipsOversizedBatches,
    /// A stop leaves open what is open, and says that it is done.
    StopsWithoutSettling,
    /// One partition that cannot go on has its whole lane taken again, for ever.
    OneHaltRestartsAll,
    /// A bounded run that is told to stop says that it is done.
    StoppedEarlyIsDone,
    /// A bounded run says that it is done although partitions halted.
    HaltedIsDone,
    /// A bounded run is done once the lanes that this instance has are.
    DoneOnceOwnLanesAre,
    /// An owner that cannot work keeps its lanes.
    UnableOwnersStay,
    /// A transaction that timed out is tried again with as many records.
    KeepsItsSize,
    /// A lane that another instance took is taken back at once.
    RetakesWhenFenced,
}
