//! The World on two real clusters.

use crate::admin::{Admin, Question};
use crate::clock::Clock;
use crate::follow::Follower;
use crate::group::Group;
use crate::lanes::Lanes;
use crate::reader::Reader;
use crate::settings::Settings;
use crate::threads::Alarm;
use rdkafka::error::KafkaError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use verbatim_core::command::{Command, Report};
use verbatim_core::event::{Ask, Event, LaneEvent, Urgency};
use verbatim_core::failure::{Side, Trouble};
use verbatim_core::time::{Instant, Now};
use verbatim_core::{Attempt, LaneId, World};

/// A client could not even be made: a property that librdkafka does not take.
#[derive(Debug, thiserror::Error)]
#[error("no client for the {side} can be made: {error}")]
pub struct StartError {
    pub side: Side,
    pub error: KafkaError,
}

impl StartError {
    pub(crate) fn on(side: Side) -> impl FnOnce(KafkaError) -> StartError {
        move |error| StartError { side, error }
    }
}

/// Two Kafka clusters, librdkafka and this machine's clock. What happens arrives through two queues, the
/// lanes' and everything else's, each in the order in which the threads of this process noticed it.
pub struct RealWorld {
    clock: Clock,
    settings: Arc<Settings>,
    events: UnboundedReceiver<Event>,
    sender: UnboundedSender<Event>,
    lane_events: UnboundedReceiver<(LaneId, Attempt, LaneEvent)>,
    lanes: Lanes,
    source: Admin,
    target: Admin,
    group: Group,
    follower: Option<Follower>,
    stopping: Arc<AtomicBool>,
    report: watch::Sender<Report>,
    alarm: Alarm,
    broken: UnboundedReceiver<String>,
}

/// Tells a World's mirror to stop, from anywhere.
#[derive(Clone, Debug)]
pub struct Stopper {
    sender: UnboundedSender<Event>,
    stopping: Arc<AtomicBool>,
}

impl Stopper {
    pub fn stop(&self, urgency: Urgency) {
        self.stopping.store(true, Ordering::Relaxed);
        // A World that is gone has stopped.
        let _ = self.sender.send(Event::Stop(urgency));
    }
}

impl RealWorld {
    /// Makes the clients that ask questions. Whether anybody answers shows later, as events.
    pub fn start(settings: Settings) -> Result<RealWorld, StartError> {
        let settings = Arc::new(settings);
        let (sender, events) = unbounded_channel();
        let (alarm, broken) = unbounded_channel();
        let alarm = Alarm(alarm);
        let admin = |side| Admin::start(&settings, side, &sender, &alarm).map_err(StartError::on(side));
        let (source, target) = (admin(Side::Source)?, admin(Side::Target)?);
        let group = Group::start(&settings, &sender, &alarm);
        let (lane_sender, lane_events) = unbounded_channel();
        Ok(RealWorld {
            clock: Clock::start(),
            lanes: Lanes::new(&settings, lane_sender),
            lane_events,
            settings,
            events,
            sender,
            source,
            target,
            group,
            follower: None,
            stopping: Arc::default(),
            report: watch::Sender::new(Report::default()),
            alarm,
            broken,
        })
    }

    pub fn stopper(&self) -> Stopper {
        Stopper { sender: self.sender.clone(), stopping: Arc::clone(&self.stopping) }
    }

    /// What the mirror last reported.
    pub fn reports(&self) -> watch::Receiver<Report> {
        self.report.subscribe()
    }

    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// Lets go of all clients: each is closed on a thread of its own, where it may take its time. Only for the group
    /// to be left is waited, and no longer than `within`: what else is still open ends with the process.
    pub fn shut_down(self, within: Duration) {
        let deadline = self.clock.now().instant + within;
        drop((self.lanes, self.source, self.target, self.follower));
        self.group.end(deadline.since(self.clock.now().instant));
    }

    async fn happened(&mut self) -> Event {
        // No queue ever closes: this World itself holds a sender of each.
        tokio::select! {
            // Whoever drives this World is to end, as if the panic were its own: nobody would ever answer it.
            Some(why) = self.broken.recv() => panic!("{why}"),
            Some(event) = self.events.recv() => event,
            Some((lane, attempt, event)) = self.lane_events.recv() => Event::Lane(lane, attempt, event),
            else => std::future::pending().await,
        }
    }

    fn ask(&self, side: Side, ask: Ask, question: Question) {
        match side {
            Side::Source => self.source.ask(ask, question),
            Side::Target => self.target.ask(ask, question),
        }
    }

    /// Reads the whole ledger with a client of its own, since nobody knows how long that takes.
    fn survey(&self, ask: Ask) {
        let (settings, sender) = (Arc::clone(&self.settings), self.sender.clone());
        self.alarm.start("survey", move || {
            let reader = Reader::connect(&settings).map_err(|error| Trouble::Refused(error.to_string()));
            let answer = reader.and_then(|reader| reader.ledger());
            // Nobody listens any more once the World is shut down.
            let _ = sender.send(Event::Surveyed { ask, answer });
        });
    }
}

impl World for RealWorld {
    fn submit(&mut self, command: Command) {
        match command {
            Command::Describe { side, ask, topics } => self.ask(side, ask, Question::Describe(topics)),
            Command::DescribeConfigs { side, ask, topics } => self.ask(side, ask, Question::Configs(topics)),
            Command::CreateTopics { ask, topics } => self.target.ask(ask, Question::Create(topics)),
            Command::GrowTopics { ask, topics } => self.target.ask(ask, Question::Grow(topics)),
            Command::SourceOffsets { ask, partitions, at } => {
                self.source.ask(ask, Question::SourceOffsets(partitions, at));
            }
            Command::TargetEnds { ask, partitions } => {
                self.target.ask(ask, Question::TargetEnds(partitions));
            }
            Command::OpenTransactions { ask, partitions } => {
                self.source.ask(ask, Question::OpenTransactions(partitions));
            }
            Command::Survey { ask } => self.survey(ask),
            Command::FollowTopics => {
                if self.follower.is_none() {
                    self.follower = Some(Follower::start(&self.settings, &self.sender, &self.alarm));
                }
            }
            Command::JoinGroup => self.group.join(),
            Command::Accept(turn) | Command::Release(turn) => self.group.answer(turn),
            Command::LeaveGroup => self.group.leave(self.stopping.load(Ordering::Relaxed)),
            Command::Lane(lane, attempt, command) => self.lanes.submit(lane, attempt, command),
            Command::Report(report) => {
                self.report.send_replace(report);
            }
        }
    }

    async fn next(&mut self, wake: Option<Instant>) -> (Now, Event) {
        let left = wake.map(|wake| wake.since(self.clock.now().instant));
        let event = match left {
            None => self.happened().await,
            Some(left) => tokio::time::timeout(left, self.happened()).await.unwrap_or(Event::Woke),
        };
        (self.clock.now(), event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use verbatim_core::config::FlowName;

    #[test]
    fn a_thread_that_breaks_breaks_its_world() {
        let nowhere = BTreeMap::from([("bootstrap.servers".to_string(), "127.0.0.1:1".to_string())]);
        let mut world = RealWorld::start(Settings {
            source: nowhere.clone(),
            target: nowhere,
            flow: FlowName::new("f").unwrap(),
            lanes: 1,
            instance: None,
            memory_bytes: 64 << 20,
        })
        .unwrap();
        world.alarm.start("questions", || panic!("no such partition"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let until_it_breaks = || {
            loop {
                runtime.block_on(world.next(None));
            }
        };
        let broken: Box<dyn std::any::Any + Send> =
            catch_unwind(AssertUnwindSafe(until_it_breaks)).unwrap_err();
        let why = broken.downcast_ref::<String>().expect("it says why");
        assert!(why.ends_with("questions panicked: no such partition"), "{why}");
    }
}
