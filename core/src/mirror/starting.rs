//! From nothing to a sound ledger: both clusters answer, they fit the configuration, and nobody else's flow
//! has this name. Nothing is written before all of that holds, except the ledger topic itself, last.

use crate::backoff::{Backoff, SOON};
use crate::command::{Command, NewTopic, Topics};
use crate::config::Flow;
use crate::event::{Ask, Event, LedgerRecord, Listing, TopicConfig, TopicInfo};
use crate::exit::Exit;
use crate::failure::{Side, Trouble};
use crate::fault::{Faults, Mutant};
use crate::ledger::{Record, Terms, check_settings, decode, wanted_settings};
use crate::mirror::Context;
use crate::route::{Loop, find_loop};
use crate::time::Instant;
use kafka_types::{TopicId, TopicName};
use std::collections::{BTreeMap, BTreeSet};

/// What a client makes of a broker that knows no topic ids (KIP-516).
const NO_ID: TopicId = TopicId(0);

/// How often the source is listed anew while listings differ: topics may come and go all the time.
const LISTINGS_MAX: u32 = 3;

/// The steps of a start, each repeated until it succeeds or the time for starting is over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Starting {
    since: Option<Instant>,
    /// When it was last looked at, and what was due next then.
    due: Option<Instant>,
    step: Step,
    asked: Option<Ask>,
    retry_at: Option<Instant>,
    backoff: Backoff,
    source: Option<Listing>,
    /// Listings that were asked for to confirm it.
    confirmations: u32,
    target: Option<Listing>,
    trouble: Option<(Side, Trouble)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    DescribeSource,
    /// Topics that may not be described are missing from a listing, and only asking by name tells them from
    /// topics that do not exist.
    DescribeNamed,
    DescribeTarget,
    /// For the same reason, before anything is created.
    DescribeLedger,
    CreateLedger,
    InspectLedger,
    /// A broker that has just started may not know every topic yet, and where the flow starts, and where a bounded run
    /// ends, is said of all topics at once.
    ConfirmSource,
    Survey,
}

/// What a completed start has found out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Started {
    pub source: Listing,
    pub target: Listing,
    pub terms: Terms,
    pub ledger_id: TopicId,
}

impl Starting {
    pub fn new() -> Starting {
        Starting {
            since: None,
            due: None,
            step: Step::DescribeSource,
            asked: None,
            retry_at: None,
            backoff: Backoff::default(),
            source: None,
            confirmations: 0,
            target: None,
            trouble: None,
        }
    }

    /// Asks what the present step needs, and gives up when it is time to.
    pub fn poll(&mut self, ctx: &mut Context<'_, impl Faults>) {
        let now = ctx.now.instant;
        if self.due.take().is_some_and(|due| due + SOON < now) {
            // A process that was stopped, or a machine that slept, has not waited for anybody.
            self.since = Some(now);
        }
        let since = *self.since.get_or_insert(now);
        if !self.is_reading() && since + ctx.flow.limits.connect_max <= now {
            return self.give_up(ctx);
        }
        self.due = self.wake_at(now, ctx.flow);
        if self.asked.is_some() || self.retry_at.is_some_and(|at| now < at) {
            return;
        }
        self.retry_at = None;
        let ask = ctx.out.ask();
        self.asked = Some(ask);
        let ledger = ctx.flow.name.ledger();
        ctx.out.push(match self.step {
            Step::DescribeSource | Step::ConfirmSource => {
                Command::Describe { side: Side::Source, ask, topics: Topics::All }
            }
            Step::DescribeNamed => {
                Command::Describe { side: Side::Source, ask, topics: Topics::Named(self.unlisted(ctx.flow)) }
            }
            Step::DescribeTarget => Command::Describe { side: Side::Target, ask, topics: Topics::All },
            Step::DescribeLedger => {
                Command::Describe { side: Side::Target, ask, topics: Topics::Named(vec![ledger]) }
            }
            Step::CreateLedger => {
                let brokers = self.target.as_ref().map_or(1, |listing| listing.brokers);
                Command::CreateTopics { ask, topics: vec![ledger_topic(ctx.flow, brokers)] }
            }
            Step::InspectLedger => Command::DescribeConfigs { side: Side::Target, ask, topics: vec![ledger] },
            Step::Survey => Command::Survey { ask },
        });
    }

    /// The next moment after `now` at which something becomes due.
    pub fn wake_at(&self, now: Instant, flow: &Flow) -> Option<Instant> {
        let give_up = self.since.filter(|_| !self.is_reading()).map(|since| since + flow.limits.connect_max);
        self.retry_at.into_iter().chain(give_up).filter(|at| now < *at).min()
    }

    /// A ledger takes as long to read as it is long, and its reader has a patience of its own.
    fn is_reading(&self) -> bool {
        self.step == Step::Survey && self.asked.is_some()
    }

    /// Takes in an answer; the result once the last step is done.
    pub fn handle(&mut self, ctx: &mut Context<'_, impl Faults>, event: &Event) -> Option<Started> {
        match event {
            Event::Described { side, ask, answer } if self.asked == Some(*ask) => {
                self.described(ctx, *side, answer);
            }
            Event::TopicsCreated { ask, answer } if self.asked == Some(*ask) => {
                match answer.get(&ctx.flow.name.ledger()) {
                    // Its id comes with the next listing.
                    Some(Ok(())) => {
                        self.go_on(Step::DescribeLedger);
                        // Brokers learn of it a moment later.
                        self.retry_at = Some(ctx.now.instant + ctx.flow.limits.retry_min);
                    }
                    Some(Err(trouble @ Trouble::Refused(_)))
                        if ctx.flow.ledger_replication_factor.is_none() =>
                    {
                        self.try_with_other_brokers(ctx, trouble);
                    }
                    Some(Err(trouble)) => self.failed(ctx, Side::Target, trouble),
                    None => self.failed(ctx, Side::Target, &Trouble::Passing("no answer".into())),
                }
            }
            Event::Configs { ask, answer, .. } if self.asked == Some(*ask) => self.inspect(ctx, answer),
            Event::Surveyed { ask, answer } if self.asked == Some(*ask) => {
                return self.surveyed(ctx, answer);
            }
            Event::Trouble(side, trouble @ Trouble::Authentication(_)) => {
                self.failed(ctx, *side, trouble);
            }
            Event::Trouble(side, trouble) => self.trouble = Some((*side, trouble.clone())),
            _ => {}
        }
        None
    }

    /// The replication factor is our own guess from the brokers that were last listed, and one of them may be gone.
    fn try_with_other_brokers(&mut self, ctx: &mut Context<'_, impl Faults>, trouble: &Trouble) {
        tracing::warn!(%trouble, "the ledger cannot be created yet");
        self.step = Step::DescribeTarget;
        self.asked = None;
        self.trouble = Some((Side::Target, trouble.clone()));
        self.retry_at = Some(self.backoff.after_failure(ctx.now.instant, &ctx.flow.limits));
    }

    fn described(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        side: Side,
        answer: &Result<Listing, Trouble>,
    ) {
        let listing = match answer {
            // Claims carry the ids for ever, and two unknown ids would pass for two clusters.
            Ok(listing) if listing.cluster_id.is_empty() => {
                return self.failed(
                    ctx,
                    side,
                    &Trouble::Passing("the cluster has not told its id yet".into()),
                );
            }
            Ok(listing) => listing.clone(),
            Err(trouble) => return self.failed(ctx, side, trouble),
        };
        // Without ids a topic that was made anew passes for the one it replaced (H6).
        if let Some((topic, _)) = listing.topics.iter().find(|(_, info)| info.id == NO_ID) {
            return ctx.out.end(Exit::Configuration(format!(
                "the {side} cluster tells no id of topic {topic}; Kafka 3.6 or later is needed on both sides"
            )));
        }
        // A topic that could not be described is neither present nor absent. Where the flow starts, and where a
        // bounded run ends, is said of all topics at once.
        let taken =
            |(topic, _): &(&TopicName, &Trouble)| side == Side::Source && ctx.flow.filter.takes(topic);
        if let Some((topic, trouble)) = listing.trouble.iter().find(taken) {
            tracing::warn!(%topic, %trouble, "a topic cannot be described");
            return self.failed(ctx, side, &trouble.clone());
        }
        match self.step {
            Step::DescribeNamed => {
                if let Some(source) = &mut self.source {
                    source.topics.extend(listing.topics);
                }
                self.go_on(Step::DescribeTarget);
            }
            Step::DescribeLedger => self.ledger_described(ctx, &listing),
            Step::ConfirmSource => self.confirm_source(ctx, listing),
            Step::DescribeSource
            | Step::DescribeTarget
            | Step::CreateLedger
            | Step::InspectLedger
            | Step::Survey => match side {
                Side::Source => {
                    self.source = Some(listing);
                    let all_listed = self.unlisted(ctx.flow).is_empty();
                    self.go_on(if all_listed { Step::DescribeTarget } else { Step::DescribeNamed });
                }
                Side::Target => {
                    self.target = Some(listing);
                    self.compare(ctx);
                }
            },
        }
    }

    /// Two listings in a row that have the same topics leave none out, or both leave out the same. What only one of them
    /// has counts as there: a topic that is gone is found out later.
    fn confirm_source(&mut self, ctx: &Context<'_, impl Faults>, listing: Listing) {
        let taken = |listing: &Listing| -> BTreeSet<TopicName> {
            listing.topics.keys().filter(|topic| ctx.flow.filter.takes(topic)).cloned().collect()
        };
        let before = self.source.take().unwrap_or_default();
        let agrees = taken(&before) == taken(&listing);
        let mut topics = before.topics;
        topics.extend(listing.topics);
        self.source = Some(Listing { topics, ..listing });
        self.confirmations += 1;
        if agrees || LISTINGS_MAX <= self.confirmations {
            return self.go_on(Step::Survey);
        }
        tracing::info!("listings of the source differ; it is listed again");
        self.go_on(Step::ConfirmSource);
        self.retry_at = Some(ctx.now.instant + SOON);
    }

    /// Where nothing is to be copied, what looks so is given a moment longer.
    fn ledger_is_sound(&mut self, ctx: &Context<'_, impl Faults>) {
        let mut topics = self.source.iter().flat_map(|listing| listing.topics.keys());
        let takes_any = topics.any(|topic| ctx.flow.filter.takes(topic));
        self.go_on(Step::ConfirmSource);
        self.retry_at = (!takes_any).then_some(ctx.now.instant + SOON);
    }

    /// The source topics that the configuration names and that no listing shows.
    fn unlisted(&self, flow: &Flow) -> Vec<TopicName> {
        let listed = |topic: &TopicName| {
            self.source.as_ref().is_some_and(|listing| listing.topics.contains_key(topic))
        };
        flow.filter.named().filter(|topic| !listed(topic)).collect()
    }

    fn ledger_described(&mut self, ctx: &mut Context<'_, impl Faults>, listing: &Listing) {
        let ledger = ctx.flow.name.ledger();
        if let Some(trouble) = listing.trouble.get(&ledger) {
            return self.failed(ctx, Side::Target, trouble);
        }
        let Some(info) = listing.topics.get(&ledger) else {
            return self.go_on(Step::CreateLedger);
        };
        if let Some(target) = &mut self.target {
            target.topics.insert(ledger, info.clone());
        }
        self.compare(ctx);
    }

    /// Both listings are there: do they fit each other and the configuration?
    fn compare(&mut self, ctx: &mut Context<'_, impl Faults>) {
        let (Some(source), Some(target)) = (&self.source, &self.target) else {
            return self.go_on(Step::DescribeSource);
        };
        if source.cluster_id == target.cluster_id
            && let Some(found) = find_loop(&ctx.flow.filter, &ctx.flow.rename, source.topics.keys())
        {
            return ctx.out.end(feeds_itself(&source.cluster_id, &found));
        }
        let ledger = ctx.flow.name.ledger();
        match target.topics.get(&ledger) {
            None => self.go_on(Step::DescribeLedger),
            Some(info) if info.partitions != ctx.flow.lanes && !ctx.plants(Mutant::LanesFromLedger) => {
                ctx.out.end(Exit::Configuration(format!(
                    "the ledger {ledger} has {} partitions, but delivery.lanes is {}: lanes are fixed when \
                     the ledger is created",
                    info.partitions, ctx.flow.lanes
                )));
            }
            Some(_) => self.go_on(Step::InspectLedger),
        }
    }

    fn inspect(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        answer: &Result<BTreeMap<TopicName, TopicConfig>, Trouble>,
    ) {
        match answer.as_ref().map(|configs| configs.get(&ctx.flow.name.ledger())) {
            Ok(Some(config)) => match check_settings(config) {
                Ok(()) => {
                    self.ledger_is_sound(ctx);
                }
                Err(unsafe_ledger) => ctx.out.end(Exit::Configuration(unsafe_ledger.to_string())),
            },
            Ok(None) => self.failed(ctx, Side::Target, &Trouble::Passing("no such ledger yet".into())),
            Err(trouble) => self.failed(ctx, Side::Target, trouble),
        }
    }

    /// Claims by others under other terms mean that the flow's name is taken (H8).
    fn surveyed(
        &mut self,
        ctx: &mut Context<'_, impl Faults>,
        answer: &Result<Vec<LedgerRecord>, Trouble>,
    ) -> Option<Started> {
        let records = match answer {
            Ok(records) => records,
            Err(trouble) => {
                self.failed(ctx, Side::Target, trouble);
                return None;
            }
        };
        let (source, target) = (self.source.clone()?, self.target.clone()?);
        let rename = ctx.flow.rename.fingerprint();
        let terms = Terms::new(ctx.flow.lanes, &source.cluster_id, &target.cluster_id, rename);
        for record in records {
            let checked = match decode(record) {
                Ok(Record::Claim(claim)) => claim.check(&terms).map_err(|mismatch| mismatch.to_string()),
                Ok(_) => Ok(()),
                Err(bad) => Err(bad.to_string()),
            };
            if let Err(text) = checked {
                ctx.out.end(Exit::Configuration(text));
                return None;
            }
        }
        let ledger_id = target.topics.get(&ctx.flow.name.ledger())?.id;
        self.tell_what_is_taken(ctx.flow, &source);
        Some(Started { source, target, terms, ledger_id })
    }

    fn tell_what_is_taken(&self, flow: &Flow, source: &Listing) {
        let is_taken = |topic: &TopicName, info: &TopicInfo| !info.internal && flow.filter.takes(topic);
        let taken: Vec<_> = source.topics.iter().filter(|(topic, info)| is_taken(topic, info)).collect();
        let partitions: u32 = taken.iter().map(|(_, info)| info.partitions).sum();
        tracing::info!(topics = taken.len(), partitions, "the source has these that topics.include takes");
        for topic in self.unlisted(flow) {
            tracing::warn!(
                %topic,
                "topics.include names a topic that the source does not have, or that may not be described; it is \
                 taken once it appears"
            );
        }
        if taken.is_empty() {
            tracing::warn!(
                "topics.include takes no topic of the source: nothing is copied until one appears"
            );
        }
    }

    fn go_on(&mut self, step: Step) {
        self.step = step;
        self.asked = None;
        self.retry_at = None;
        self.backoff.reset();
    }

    fn failed(&mut self, ctx: &mut Context<'_, impl Faults>, side: Side, trouble: &Trouble) {
        self.asked = None;
        self.trouble = Some((side, trouble.clone()));
        self.retry_at = Some(self.backoff.after_failure(ctx.now.instant, &ctx.flow.limits));
        match trouble {
            Trouble::Authentication(_) | Trouble::NotAuthorized { .. } => {
                ctx.out.end(Exit::NotAuthorized(side, trouble.clone()));
            }
            Trouble::Refused(text) => {
                ctx.out.end(refused(side, text));
            }
            Trouble::Unreachable(_) | Trouble::Passing(_) => {
                tracing::warn!(%side, %trouble, "cannot start yet");
            }
        }
    }

    fn give_up(&mut self, ctx: &mut Context<'_, impl Faults>) {
        let side = match self.step {
            Step::DescribeSource | Step::DescribeNamed | Step::ConfirmSource => Side::Source,
            Step::DescribeTarget
            | Step::DescribeLedger
            | Step::CreateLedger
            | Step::InspectLedger
            | Step::Survey => Side::Target,
        };
        ctx.out.end(match &self.trouble {
            Some((side, Trouble::Refused(text))) => refused(*side, text),
            Some((side, trouble)) => Exit::Unreachable(*side, trouble.to_string()),
            None => Exit::Unreachable(side, "no answer".into()),
        });
    }
}

fn refused(side: Side, text: &str) -> Exit {
    Exit::Configuration(format!("the {side} cluster refuses: {text}"))
}

fn ledger_topic(flow: &Flow, brokers: u32) -> NewTopic {
    let default = i16::try_from(brokers.clamp(1, 3)).expect("at most 3");
    let replication_factor = flow.ledger_replication_factor.unwrap_or(default);
    NewTopic {
        name: flow.name.ledger(),
        partitions: flow.lanes,
        replication_factor: Some(replication_factor),
        config: wanted_settings(replication_factor),
    }
}

pub(super) fn feeds_itself(cluster: &str, found: &Loop) -> Exit {
    Exit::Configuration(format!("source and target are the same cluster ({cluster}), and {found}"))
}
