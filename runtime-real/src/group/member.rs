//! The member: librdkafka's client, and the turn that it waits in.

use crate::client::log;
use crate::ffi::ClientError;
use crate::ffi::group::member_id;
use kafka_types::TopicName;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientConfig, ClientContext, TopicPartitionList};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use verbatim_core::LaneId;
use verbatim_core::event::Turn;
use verbatim_core::failure::Side;

/// How long one wait for librdkafka takes, and so how long an order may lie.
const POLL: Duration = Duration::from_millis(50);

/// How long a static member's request to leave may take to be sent.
const LEAVE_MAX: Duration = Duration::from_secs(3);

pub(super) struct Member {
    consumer: BaseConsumer<Context>,
    open: Option<OpenTurn>,
}

struct OpenTurn {
    turn: Turn,
    change: Change,
    since: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Assign,
    Revoke,
}

/// What a rebalance callback left behind.
pub(super) struct Rebalance {
    pub(super) change: Change,
    pub(super) lanes: Vec<LaneId>,
    pub(super) lost: bool,
}

impl Member {
    /// Joins the group, subscribed to the ledger. Whether it has joined shows later.
    pub(super) fn join(config: &ClientConfig, ledger: &TopicName) -> Result<Member, KafkaError> {
        let consumer: BaseConsumer<Context> = config.create_with_context(Context::default())?;
        consumer.subscribe(&[ledger.as_str()])?;
        Ok(Member { consumer, open: None })
    }

    /// Lets librdkafka work for a moment.
    pub(super) fn poll(&self) -> Result<(), KafkaError> {
        self.consumer.poll(POLL).map_or(Ok(()), |polled| polled.map(drop))
    }

    pub(super) fn fatal_error(&self) -> Option<ClientError> {
        let (code, text) = self.consumer.client().fatal_error()?;
        Some(ClientError::of_rdkafka(code, text))
    }

    /// The next thing that the group wants.
    pub(super) fn rebalance(&self) -> Option<Rebalance> {
        self.consumer.context().next()
    }

    pub(super) fn begin(&mut self, turn: Turn, change: Change) {
        self.open = Some(OpenTurn { turn, change, since: Instant::now() });
    }

    pub(super) fn is_open(&self, turn: Turn) -> bool {
        self.open.as_ref().is_some_and(|open| open.turn == turn)
    }

    /// The turn that has been open for longer than `max`.
    pub(super) fn open_for(&self, max: Duration) -> Option<(Turn, Change)> {
        let open = self.open.as_ref().filter(|open| max < open.since.elapsed())?;
        Some((open.turn, open.change))
    }

    /// Whatever the group still wants is answered at once from now on.
    pub(super) fn prepare_to_close(&mut self) {
        self.consumer.context().closing.store(true, Ordering::Relaxed);
        self.answer();
    }

    /// Answers the open turn, if there is one. Empty, since nothing is assigned to the client: see above.
    pub(super) fn answer(&mut self) {
        if let Some(open) = self.open.take() {
            answer(&self.consumer, open.change);
        }
    }

    /// Leaves the group although static: closing alone would not, unsubscribing does. The member id goes when
    /// the request to leave has been handed to the connection.
    pub(super) fn leave(&self) {
        self.consumer.unsubscribe();
        let since = Instant::now();
        let is_member = || member_id(self.consumer.client().native_client()).is_some_and(|id| !id.is_empty());
        while is_member() && since.elapsed() < LEAVE_MAX {
            self.consumer.poll(POLL);
        }
        // Sent, but closing right away could overtake it.
        self.consumer.poll(POLL);
    }
}

fn answer(consumer: &BaseConsumer<Context>, change: Change) {
    let nothing = TopicPartitionList::new();
    let answered = match change {
        Change::Assign => consumer.assign(&nothing),
        Change::Revoke => consumer.unassign(),
    };
    if let Err(error) = answered {
        tracing::warn!(?change, %error, "librdkafka does not take the answer to a turn");
    }
}

/// Collects what librdkafka's callback says, for the thread that polls to act on.
#[derive(Default)]
struct Context {
    rebalances: Mutex<VecDeque<Rebalance>>,
    /// Closing has begun: whatever is still revoked is answered at once, or closing would never end.
    closing: AtomicBool,
}

impl Context {
    fn next(&self) -> Option<Rebalance> {
        self.rebalances.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        log(Side::Target, level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // Returned by poll too, where it is acted on.
        tracing::debug!(%error, reason, "the group's client reports an error");
    }
}

impl ConsumerContext for Context {
    fn rebalance(
        &self,
        consumer: &BaseConsumer<Self>,
        what: RDKafkaRespErr,
        partitions: &mut TopicPartitionList,
    ) {
        let change = match what {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => Change::Assign,
            _ => Change::Revoke,
        };
        if self.closing.load(Ordering::Relaxed) {
            answer(consumer, change);
            return;
        }
        // Valid only within this callback.
        let lost = consumer.assignment_lost();
        let lanes =
            partitions.elements().into_iter().filter_map(|place| u32::try_from(place.partition()).ok());
        let rebalance = Rebalance { change, lanes: lanes.map(LaneId).collect(), lost };
        self.rebalances.lock().unwrap_or_else(PoisonError::into_inner).push_back(rebalance);
    }
}
