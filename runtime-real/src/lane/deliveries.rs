//! Delivery reports of a lane's producer, and what is certain without one.

use super::failure;
use super::flight::Flight;
use super::outbox::{Outbox, PACE};
use super::tag::Tag;
use crate::ffi::Delivery;
use verbatim_core::event::LaneEvent;
use verbatim_core::failure::{Failure, Refusal};

impl Outbox {
    /// Books the delivery reports that the client has served.
    pub(super) fn count_deliveries(&mut self) {
        let deliveries = self.producer.take_deliveries();
        // A fatal error is the cause of all that fails after it, and what dooms the transaction that of purges.
        let failed = deliveries.iter().any(|delivery| delivery.outcome.is_err());
        let fatal = if failed { self.producer.fatal_error() } else { None };
        // An abort that has just ended leaves nothing in flight, and no transaction to ask about.
        let in_flight = !self.flights.is_empty() || self.ledger.is_some();
        let doomed = if failed && in_flight && fatal.is_none() { self.doomed() } else { None };
        for Delivery { tag, outcome } in deliveries {
            if let (Err(error), Some(transaction)) = (&outcome, &mut self.transaction) {
                transaction.has_gap |= failure::leaves_gap(error);
            }
            let flight = match Tag::of_number(tag) {
                Tag::Ledger => self.ledger.as_mut(),
                Tag::Batch(batch) => self.flights.get_mut(&batch),
            };
            // What was purged by an abort, or given up, is no longer expected.
            let Some(flight) = flight else { continue };
            match outcome {
                Ok(offset) => flight.acknowledged(offset),
                Err(error) => {
                    let id = &self.settings.transactional_id;
                    flight.refused(match &doomed {
                        Some(cause) if failure::is_echo(&error) => Refusal::Collateral(cause.clone()),
                        _ => failure::of_record(&error, fatal.as_ref(), &flight.topic, id),
                    });
                }
            }
        }
    }

    /// Why the open transaction as a whole must be aborted, if librdkafka has decided that.
    pub(super) fn doomed(&self) -> Option<Failure> {
        self.transaction.as_ref()?.doomed(&self.producer, &self.settings.transactional_id)
    }

    /// Why nothing more will be heard of what is in flight, if that is so: once a transaction can only be aborted,
    /// librdkafka sends nothing more of it, also not what waits to be sent again, and reports it only when its time is
    /// over, as late as the transaction's. But a record's own refusal dooms the transaction a moment before it is
    /// reported, so reports are given that moment first.
    pub(super) fn given_up(&mut self) -> Option<Failure> {
        let cause = self.doomed()?;
        self.producer.flush(PACE);
        self.count_deliveries();
        Some(cause)
    }

    /// Refuses whatever is in flight if nothing more will be heard of it; whether that is so.
    pub(super) fn give_up_the_doomed(&mut self) -> bool {
        let Some(cause) = self.given_up() else { return false };
        for flight in self.flights.values_mut().filter(|flight| !flight.has_landed()) {
            flight.given_up(Refusal::Collateral(cause.clone()));
        }
        true
    }

    /// Whether a batch was refused and the rest of its delivery reports will not come.
    fn is_over(&self) -> bool {
        let waits = |flight: &Flight| flight.is_refused() && !flight.has_landed();
        self.flights.values().any(waits) && self.doomed().is_some()
    }

    /// Reports the batches whose last delivery report is in.
    pub(super) fn land(&mut self) {
        self.count_deliveries();
        let is_over = self.is_over();
        let lands = |flight: &Flight| flight.has_landed() || (is_over && flight.is_refused());
        for (batch, flight) in self.flights.extract_if(.., |_, flight| lands(flight)) {
            self.lineup.landed(batch);
            self.emitter.emit(flight.attempt, LaneEvent::Acked(batch, flight.outcome()));
        }
    }
}
