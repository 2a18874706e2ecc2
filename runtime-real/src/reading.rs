//! Reading partitions from one offset to another, committed records only, over whatever holes there are.

use crate::client_config::reader;
use crate::ffi::{AssignedConsumer, ClientError, Code, Liveness, OwnedMessage, StartAt};
use crate::settings::Settings;
use crate::trouble::Asked;
use kafka_types::{Partition, TopicName};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use verbatim_core::failure::{Side, Trouble};

/// How long a read may bring nothing before it is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(500);
/// Messages taken from librdkafka at once.
const BURST: usize = 1_000;

/// Why a read came to no end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("{0}")]
    Trouble(Trouble),
    /// The log does not hold the position, no longer or not yet.
    #[error("{topic}/{partition}: offset {position} is not in the log")]
    OutOfRange { topic: TopicName, partition: Partition, position: i64 },
    /// Nothing committed came for long, and the end asked for is not reached: a transaction is still open
    /// before it, or the log was cut back.
    #[error("{topic}/{partition}: what is committed ends at {position}, before {to}")]
    Short { topic: TopicName, partition: Partition, position: i64, to: i64 },
    #[error("{topic}/{partition}: unreadable at {position}: {why}")]
    Unreadable { topic: TopicName, partition: Partition, position: i64, why: String },
}

impl ReadError {
    /// In the terms of a question that was not answered.
    pub fn trouble(self) -> Trouble {
        match self {
            ReadError::Trouble(trouble) => trouble,
            other => Trouble::Passing(other.to_string()),
        }
    }
}

/// A committed record as it lies in its partition.
#[derive(Clone, Copy)]
pub struct RecordView<'a>(&'a OwnedMessage);

impl<'a> RecordView<'a> {
    pub fn offset(self) -> i64 {
        self.0.offset()
    }

    /// Milliseconds since 1970; -1 where the record has none.
    pub fn timestamp(self) -> i64 {
        self.0.timestamp()
    }

    /// `None` for a null key, which an empty key is not.
    pub fn key(self) -> Option<&'a [u8]> {
        self.0.key()
    }

    pub fn value(self) -> Option<&'a [u8]> {
        self.0.value()
    }

    /// Names and values in order, byte for byte, repeats included. Fails where librdkafka cannot parse them.
    pub fn headers(self) -> Result<impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>, String> {
        self.0.headers().map_err(|error| error.to_string())
    }
}

/// A partition to read, and how far.
#[derive(Clone, Debug)]
pub struct Span {
    pub topic: TopicName,
    pub partition: Partition,
    /// `None`: from the log's beginning, wherever that is.
    pub from: Option<i64>,
    /// The read is over when this position is reached.
    pub to: i64,
}

/// Makes a consumer for [`read`].
pub(crate) fn consumer(settings: &Settings, side: Side, purpose: &str) -> Result<AssignedConsumer, Trouble> {
    let queue_bytes = (settings.memory_bytes / 8).clamp(1 << 20, 64 << 20);
    AssignedConsumer::new(&reader(settings, side, purpose, queue_bytes), Liveness::default())
        .map_err(|error| Trouble::Refused(error.to_string()))
}

/// A partition on its way.
struct Open<'a> {
    span: &'a Span,
    position: i64,
    done: bool,
}

/// Hands every committed record of every span to `each`, in order within a partition, until all are read or
/// `each` breaks off. The consumer is left with nothing assigned.
pub(crate) fn read(
    consumer: &AssignedConsumer,
    spans: &[Span],
    patience: Duration,
    mut each: impl FnMut(&Span, RecordView<'_>) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    let mut open: Vec<Open<'_>> = spans
        .iter()
        .map(|span| {
            let position = span.from.unwrap_or(0);
            Open { span, position, done: span.to <= position }
        })
        .collect();
    let starts = open.iter().filter(|open| !open.done).map(|open| StartAt {
        topic: open.span.topic.as_str(),
        partition: open.span.partition.0,
        offset: open.span.from.unwrap_or(StartAt::BEGINNING),
        epoch: -1,
    });
    consumer.assign(starts).map_err(|error| ReadError::Trouble(trouble(&error, "")))?;
    let outcome = read_assigned(consumer, &mut open, patience, &mut each);
    let assigned = spans.iter().map(|span| (span.topic.as_str(), span.partition.0));
    if let Err(error) = consumer.unassign(assigned) {
        tracing::debug!(%error, "the partitions just read cannot be given back");
    }
    outcome
}

fn read_assigned(
    consumer: &AssignedConsumer,
    open: &mut [Open<'_>],
    patience: Duration,
    each: &mut impl FnMut(&Span, RecordView<'_>) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    let mut progress = Instant::now();
    let mut last_error = None;
    while open.iter().any(|open| !open.done) {
        for message in consumer.poll(BURST, POLL) {
            let place = message.topic().and_then(|topic| {
                let partition = message.partition();
                open.iter_mut()
                    .find(|open| open.span.partition.0 == partition && open.span.topic.as_str() == topic)
            });
            let Some(open) = place else {
                // Only a group's members need its coordinator, and no member is made here (S10).
                let about_group = Code::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED;
                last_error = message.error().filter(|error| error.code != about_group).or(last_error);
                continue;
            };
            let before = open.position;
            if open.take(&message, each)?.is_break() {
                return Ok(());
            }
            if open.position != before {
                progress = Instant::now();
            }
        }
        if patience < progress.elapsed() {
            return Err(gave_up(open, last_error.as_ref()));
        }
    }
    Ok(())
}

impl Open<'_> {
    fn take(
        &mut self,
        message: &OwnedMessage,
        each: &mut impl FnMut(&Span, RecordView<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ReadError> {
        if let Some(error) = message.error() {
            return match error.code {
                Code::RD_KAFKA_RESP_ERR__PARTITION_EOF => {
                    self.reach(message.offset());
                    Ok(ControlFlow::Continue(()))
                }
                _ => self.failed(&error),
            };
        }
        let mut flow = ControlFlow::Continue(());
        if !self.done && message.offset() < self.span.to {
            flow = each(self.span, RecordView(message));
        }
        self.reach(message.offset() + 1);
        Ok(flow)
    }

    fn reach(&mut self, position: i64) {
        self.position = self.position.max(position);
        self.done |= self.span.to <= self.position;
    }

    fn failed(&self, error: &ClientError) -> Result<ControlFlow<()>, ReadError> {
        let (topic, partition, position) = (self.span.topic.clone(), self.span.partition, self.position);
        match error.code {
            Code::RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE | Code::RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET => {
                Err(ReadError::OutOfRange { topic, partition, position })
            }
            Code::RD_KAFKA_RESP_ERR__BAD_MSG
            | Code::RD_KAFKA_RESP_ERR__BAD_COMPRESSION
            | Code::RD_KAFKA_RESP_ERR_INVALID_MSG
            | Code::RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED => {
                Err(ReadError::Unreadable { topic, partition, position, why: error.to_string() })
            }
            _ => match trouble(error, topic.as_str()) {
                trouble @ (Trouble::NotAuthorized { .. } | Trouble::Authentication(_)) => {
                    Err(ReadError::Trouble(trouble))
                }
                // librdkafka goes on trying, and so does the caller's patience.
                Trouble::Unreachable(_) | Trouble::Refused(_) | Trouble::Passing(_) => {
                    tracing::debug!(%topic, %partition, %error, "reading is held up");
                    Ok(ControlFlow::Continue(()))
                }
            },
        }
    }
}

fn gave_up(open: &[Open<'_>], last_error: Option<&ClientError>) -> ReadError {
    if let Some(error) = last_error {
        return ReadError::Trouble(trouble(error, ""));
    }
    let behind = open.iter().find(|open| !open.done).expect("gave up only while something is unread");
    ReadError::Short {
        topic: behind.span.topic.clone(),
        partition: behind.span.partition,
        position: behind.position,
        to: behind.span.to,
    }
}

pub(crate) fn trouble(error: &ClientError, topic: &str) -> Trouble {
    error.trouble(&Asked::new("Read", topic))
}
