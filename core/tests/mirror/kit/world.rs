use super::clusters::{Clusters, State};
use super::lane::{LaneSim, is_for_reader};
use kafka_types::{OffsetAndEpoch, SourceOffset, SourcePartition, TargetOffset, TargetPartition, TopicName};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use verbatim_core::command::{Command, Place, Topics};
use verbatim_core::event::{
    Ask, ConfigValue, Event, GroupEvent, LaneEvent, Listing, OpenTransaction, TargetEnd, TopicInfo, Turn,
};
use verbatim_core::failure::{Side, Trouble};
use verbatim_core::time::{Instant, Now, Timestamp};
use verbatim_core::{LaneId, World};

/// What a script does with a command before the World carries it out.
pub enum Answer {
    /// Carry it out.
    Obey,
    /// Do not; these happen instead.
    Instead(Vec<LaneEvent>),
    /// Carry it out, but report this.
    ObeyAndSay(Vec<LaneEvent>),
    Events(Vec<Event>),
}

type Script = Box<dyn FnMut(&mut Clusters, &Command) -> Answer>;
type Cue = (fn(&Command) -> bool, Event);
type Occasion = Box<dyn FnMut(Duration, &mut Clusters) -> Vec<Event>>;

/// A World in memory. Deterministic: what may happen next is chosen by a seed, or in order without one.
pub struct ScriptedWorld {
    pub clusters: Clusters,
    pub lanes: BTreeMap<LaneId, LaneSim>,
    pub lanes_offered: Vec<LaneId>,
    pub log: Vec<Command>,
    pub records_max: usize,
    pub steps_left: u32,
    pub held_max: u64,
    now: Duration,
    admin: VecDeque<Command>,
    events: VecDeque<Event>,
    script: Script,
    occasion: Occasion,
    cues: Vec<Cue>,
    schedule: BTreeMap<Duration, Event>,
    random: Option<u64>,
    ids: u64,
    turns: u64,
    answered: BTreeSet<Turn>,
    following: Option<usize>,
    woke_in_a_row: u32,
}

impl ScriptedWorld {
    pub fn new(clusters: Clusters, lanes: u32) -> ScriptedWorld {
        ScriptedWorld {
            clusters,
            lanes: BTreeMap::new(),
            lanes_offered: (0..lanes).map(LaneId).collect(),
            log: Vec::new(),
            records_max: 10,
            steps_left: 100_000,
            held_max: 0,
            now: Duration::ZERO,
            admin: VecDeque::new(),
            events: VecDeque::new(),
            script: Box::new(|_, _| Answer::Obey),
            occasion: Box::new(|_, _| Vec::new()),
            cues: Vec::new(),
            schedule: BTreeMap::new(),
            random: None,
            ids: 0,
            turns: 0,
            answered: BTreeSet::new(),
            following: None,
            woke_in_a_row: 0,
        }
    }

    /// Asked about every command before it is carried out.
    pub fn scripted(mut self, script: impl FnMut(&mut Clusters, &Command) -> Answer + 'static) -> Self {
        self.script = Box::new(script);
        self
    }

    /// Called before every event, with the time; what it returns happens next.
    pub fn interrupted(
        mut self,
        occasion: impl FnMut(Duration, &mut Clusters) -> Vec<Event> + 'static,
    ) -> Self {
        self.occasion = Box::new(occasion);
        self
    }

    /// Happens right after the mirror has first given such a command.
    pub fn upon(mut self, is: fn(&Command) -> bool, event: Event) -> Self {
        self.cues.push((is, event));
        self
    }

    /// Happens after so many milliseconds.
    pub fn at(mut self, millis: u64, event: Event) -> Self {
        self.schedule.insert(Duration::from_millis(millis), event);
        self
    }

    /// Chooses at random, from a seed, what of all that may happen happens next.
    pub fn shuffled(mut self, seed: u64) -> Self {
        self.random = Some(seed);
        self
    }

    pub fn now(&self) -> Now {
        let wall = Timestamp(1_700_000_000_000 + self.now.as_millis() as i64);
        Now { instant: Instant(self.now), wall }
    }

    fn pick(&mut self, choices: usize) -> usize {
        let Some(state) = &mut self.random else { return 0 };
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % choices as u64) as usize
    }

    /// One thing that happens, if anything can without waiting.
    fn step(&mut self) -> Option<Event> {
        loop {
            let mut choices = Vec::new();
            if !self.events.is_empty() {
                choices.push(Choice::Deliver);
            }
            if !self.admin.is_empty() {
                choices.push(Choice::Admin);
            }
            for (id, lane) in &self.lanes {
                for side in 0..2 {
                    if !lane.events[side].is_empty() {
                        choices.push(Choice::LaneEvent(*id, side));
                    }
                }
                if !lane.producer.is_empty() {
                    choices.push(Choice::Producer(*id));
                }
                if !lane.reader.is_empty() {
                    choices.push(Choice::Reader(*id));
                }
            }
            for id in self.lanes.keys() {
                choices.push(Choice::Fetch(*id));
            }
            // Fetching may bring nothing, so each choice is tried once before giving up.
            while !choices.is_empty() {
                let choice = choices.remove(self.pick(choices.len()));
                match self.take(choice) {
                    Taken::Event(event) => return Some(event),
                    Taken::Work => break,
                    Taken::Nothing => {}
                }
            }
            if choices.is_empty() && self.is_idle() {
                return None;
            }
        }
    }

    fn is_idle(&self) -> bool {
        let lanes_idle = self.lanes.values().all(|lane| {
            lane.producer.is_empty() && lane.reader.is_empty() && lane.events.iter().all(VecDeque::is_empty)
        });
        self.events.is_empty() && self.admin.is_empty() && lanes_idle
    }

    fn take(&mut self, choice: Choice) -> Taken {
        match choice {
            Choice::Deliver => self.events.pop_front().map_or(Taken::Nothing, Taken::Event),
            Choice::LaneEvent(id, side) => {
                let lane = self.lanes.get_mut(&id).expect("chosen");
                let event = lane.events[side].pop_front();
                event.map_or(Taken::Nothing, |(attempt, event)| Taken::Event(Event::Lane(id, attempt, event)))
            }
            Choice::Admin => {
                let Some(command) = self.admin.pop_front() else { return Taken::Nothing };
                match (self.script)(&mut self.clusters, &command) {
                    Answer::Events(events) => self.events.extend(events),
                    _ => self.administer(command),
                }
                Taken::Work
            }
            Choice::Producer(id) => {
                self.work_producer(id);
                Taken::Work
            }
            Choice::Reader(id) => {
                let lane = self.lanes.get_mut(&id).expect("chosen");
                let Some((attempt, command)) = lane.reader.pop_front() else { return Taken::Nothing };
                lane.obey(attempt, command);
                Taken::Work
            }
            Choice::Fetch(id) => {
                let lane = self.lanes.get_mut(&id).expect("chosen");
                let fetched = lane.fetch(&self.clusters, &mut self.ids, self.records_max);
                self.held_max = self.held_max.max(lane.held());
                match fetched {
                    Some(event) => {
                        lane.events[1].push_back(event);
                        Taken::Work
                    }
                    None => Taken::Nothing,
                }
            }
        }
    }

    fn work_producer(&mut self, id: LaneId) {
        let lane = self.lanes.get_mut(&id).expect("chosen");
        let Some((attempt, command)) = lane.producer.pop_front() else { return };
        let whole = Command::Lane(id, attempt, command.clone());
        let answer = (self.script)(&mut self.clusters, &whole);
        let tagged = |events: Vec<LaneEvent>| events.into_iter().map(move |event| (attempt, event));
        match answer {
            Answer::Obey => {
                let events = lane.produce(&mut self.clusters, attempt, command);
                lane.events[0].extend(events);
            }
            Answer::Instead(events) => lane.events[0].extend(tagged(events)),
            Answer::ObeyAndSay(events) => {
                lane.produce(&mut self.clusters, attempt, command);
                lane.events[0].extend(tagged(events));
            }
            Answer::Events(events) => self.events.extend(events),
        }
        self.follow();
    }

    /// Hands on what is new in ledger partition 0.
    fn follow(&mut self) {
        let Some(seen) = self.following else { return };
        let all = self.clusters.ledger.get(&LaneId(0)).map_or(&[][..], Vec::as_slice);
        if seen < all.len() {
            self.events.push_back(Event::TopicRecords(all[seen..].to_vec()));
            self.following = Some(all.len());
        }
    }

    fn turn(&mut self) -> Turn {
        self.turns += 1;
        Turn(self.turns)
    }

    fn administer(&mut self, command: Command) {
        let event = match command {
            Command::Describe { side, ask, topics } => self.describe(side, ask, &topics),
            Command::DescribeConfigs { side, ask, topics } => self.configs(side, ask, &topics),
            Command::CreateTopics { ask, topics } => {
                topics.iter().for_each(|topic| self.clusters.create(topic));
                let answer = topics.into_iter().map(|topic| (topic.name, Ok(()))).collect();
                Event::TopicsCreated { ask, answer }
            }
            Command::GrowTopics { ask, topics } => {
                for (name, count) in &topics {
                    let topic = self.clusters.target.get_mut(name).expect("a topic to grow");
                    topic.logs.resize(topic.logs.len().max(*count as usize), Vec::new());
                }
                Event::TopicsGrown { ask, answer: topics.into_keys().map(|name| (name, Ok(()))).collect() }
            }
            Command::SourceOffsets { ask, partitions, at } => self.source_offsets(ask, partitions, at),
            Command::TargetEnds { ask, partitions } => {
                let answer = partitions.into_iter().map(|place| (place.clone(), self.ends(&place)));
                Event::TargetEnds { ask, answer: answer.collect() }
            }
            Command::OpenTransactions { ask, partitions } => {
                let open = OpenTransaction { first: None, producer_id: Some(7) };
                let answer = partitions.into_iter().map(|it| (it, vec![open.clone()])).collect();
                Event::OpenTransactions { ask, answer }
            }
            Command::Survey { ask } => {
                let answer = Ok(self.clusters.ledger.values().flatten().cloned().collect());
                Event::Surveyed { ask, answer }
            }
            Command::FollowTopics => {
                self.following = Some(0);
                return self.follow();
            }
            Command::JoinGroup => {
                let (turn, lanes) = (self.turn(), self.lanes_offered.clone());
                Event::Group(GroupEvent::Offered { turn, lanes })
            }
            Command::Accept(turn) | Command::Release(turn) => {
                assert!(self.answered.insert(turn), "{turn:?} is answered twice");
                return;
            }
            Command::LeaveGroup => Event::Group(GroupEvent::Left),
            Command::Report(_) => return,
            Command::Lane(..) => unreachable!("lanes have clients of their own"),
        };
        self.events.push_back(event);
    }

    fn describe(&self, side: Side, ask: Ask, topics: &Topics) -> Event {
        let all: BTreeMap<TopicName, TopicInfo> = match side {
            Side::Source => {
                let info = |it: &super::clusters::SourceTopic| (it.id, it.logs.len());
                self.clusters.source.iter().map(|(name, it)| (name.clone(), info(it))).map(describe).collect()
            }
            Side::Target => {
                let info = |it: &super::clusters::TargetTopic| (it.id, it.logs.len());
                self.clusters.target.iter().map(|(name, it)| (name.clone(), info(it))).map(describe).collect()
            }
        };
        let cluster_id =
            if side == Side::Source { self.clusters.source_id.clone() } else { "target".to_string() };
        let mut listing = Listing { cluster_id, brokers: 1, ..Listing::default() };
        match topics {
            Topics::All => listing.topics = all,
            Topics::Named(names) => {
                for name in names {
                    match all.get(name) {
                        Some(info) => drop(listing.topics.insert(name.clone(), info.clone())),
                        None => listing.unknown.push(name.clone()),
                    }
                }
            }
        }
        Event::Described { side, ask, answer: Ok(listing) }
    }

    fn configs(&self, side: Side, ask: Ask, topics: &[TopicName]) -> Event {
        let config = |name: &TopicName| {
            let config = match side {
                Side::Source => self.clusters.source.get(name).map(|_| BTreeMap::new()),
                Side::Target => self.clusters.target.get(name).map(|topic| topic.config.clone()),
            }?;
            let value = |(key, value)| (key, ConfigValue { value, overridden: true });
            Some((name.clone(), config.into_iter().map(value).collect()))
        };
        Event::Configs { side, ask, answer: Ok(topics.iter().filter_map(config).collect()) }
    }

    fn source_offsets(&mut self, ask: Ask, partitions: Vec<SourcePartition>, at: Place) -> Event {
        let offset = |place: &SourcePartition| {
            let topic = self.clusters.source.get(&place.topic);
            let log = topic.and_then(|topic| topic.logs.get(place.partition.index()));
            let log = log.ok_or(Trouble::Passing("unknown partition".into()))?;
            let offset = match at {
                Place::Earliest => log.start,
                Place::LastStable => log.stable(),
                Place::HighWatermark => log.end(),
                Place::Time(time) => {
                    let found =
                        log.slots.iter().position(|slot| slot.is_some_and(|record| time.0 <= record.time));
                    found.map_or(log.stable(), |at| at as i64)
                }
            };
            Ok(OffsetAndEpoch { offset: SourceOffset(offset), epoch: Some(self.clusters.epoch_at(place)) })
        };
        let answer = partitions.iter().map(|place| (place.clone(), offset(place))).collect();
        Event::SourceOffsets { ask, answer }
    }

    fn ends(&mut self, place: &TargetPartition) -> Result<TargetEnd, Trouble> {
        let log = self.clusters.target_log(place).ok_or(Trouble::Passing("unknown partition".into()))?;
        let stable = log.iter().position(|slot| slot.state == State::Pending).unwrap_or(log.len());
        let high_watermark = TargetOffset(log.len() as i64);
        Ok(TargetEnd { high_watermark, last_stable: TargetOffset(stable as i64) })
    }
}

fn describe((name, (id, partitions)): (TopicName, (kafka_types::TopicId, usize))) -> (TopicName, TopicInfo) {
    (name, TopicInfo { id, partitions: partitions as u32, internal: false })
}

enum Choice {
    Deliver,
    Admin,
    LaneEvent(LaneId, usize),
    Producer(LaneId),
    Reader(LaneId),
    Fetch(LaneId),
}

enum Taken {
    Event(Event),
    Work,
    Nothing,
}

impl World for ScriptedWorld {
    fn submit(&mut self, command: Command) {
        self.log.push(command.clone());
        if let Some(at) = self.cues.iter().position(|(is, _)| is(&command)) {
            let (_, event) = self.cues.remove(at);
            self.events.push_back(event);
        }
        match command {
            Command::Lane(id, attempt, command) => {
                if is_for_reader(&command) {
                    // Scripts see what the reader is told, but cannot keep it from it.
                    (self.script)(&mut self.clusters, &Command::Lane(id, attempt, command.clone()));
                }
                self.lanes.entry(id).or_insert_with(|| LaneSim::new(id)).submit(attempt, command);
            }
            command => self.admin.push_back(command),
        }
    }

    async fn next(&mut self, wake: Option<Instant>) -> (Now, Event) {
        self.steps_left = self.steps_left.checked_sub(1).expect("the mirror comes to no end");
        let events = (self.occasion)(self.now, &mut self.clusters);
        self.events.extend(events);
        while let Some(due) = self.schedule.first_entry().filter(|it| *it.key() <= self.now) {
            self.events.push_back(due.remove());
        }
        if let Some(event) = self.step() {
            self.woke_in_a_row = 0;
            self.now += Duration::from_micros(100);
            return (self.now(), event);
        }
        if let Some(planned) = self.schedule.first_entry()
            && wake.is_none_or(|wake| *planned.key() < wake.0)
        {
            self.now = *planned.key();
            let event = planned.remove();
            return (self.now(), event);
        }
        let wake = wake.expect("stuck: nothing is under way and no timer is set");
        assert!(self.now < wake.0, "a timer in the past: {wake:?} at {:?}", self.now);
        self.woke_in_a_row += 1;
        assert!(self.woke_in_a_row < 2_000, "busy: woken again and again, and nothing happens");
        self.now = wake.0;
        (self.now(), Event::Woke)
    }
}
