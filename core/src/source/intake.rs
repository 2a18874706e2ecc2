/// How many bytes of one lane's records may be under way: back-pressure.
///
/// The World brings records only against credit. Credit is granted while less than the budget is held, where
/// held means fetched and not yet acknowledged by the target.
///
/// A. `held + granted <= budget` after every grant.
/// B. A batch may overshoot the credit that admitted it, so `held` alone may pass the budget by one batch.
/// C. `granted` is what the World has left, to the byte. It is below zero after an overshoot, which the next
///    grant makes good: forgotten debts would add up until the World waits for credit that never comes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Intake {
    budget: u64,
    held: u64,
    granted: i64,
}

impl Intake {
    pub fn new(budget: u64) -> Intake {
        Intake { budget, held: 0, granted: 0 }
    }

    /// A smaller budget takes no credit back; it only delays the next grant.
    pub fn set_budget(&mut self, budget: u64) {
        self.budget = budget;
    }

    /// The World has dropped all credit and batches.
    pub fn reset(&mut self) {
        self.held = 0;
        self.granted = 0;
    }

    /// The credit to grant now. Small grants are saved up, since each costs a command.
    pub fn grant(&mut self) -> Option<u64> {
        let room = self.budget.saturating_sub(self.held);
        // What is left of earlier credit fills the room; a debt adds to the grant.
        let free = 0.max(signed(room).saturating_sub(self.granted)).unsigned_abs();
        if room == 0 || free == 0 || free < self.budget / 4 {
            return None;
        }
        self.granted += signed(free);
        debug_assert!(signed(self.held) + self.granted <= signed(self.budget), "invariant A");
        Some(free)
    }

    pub fn fetched(&mut self, bytes: u64) {
        self.granted = self.granted.saturating_sub(signed(bytes));
        self.held += bytes;
    }

    /// Fetched, but no longer wanted: it used up credit and is held by nobody.
    pub fn discarded(&mut self, bytes: u64) {
        self.granted = self.granted.saturating_sub(signed(bytes));
    }

    /// Acknowledged or dropped: the World holds them no more.
    pub fn released(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.held, "more bytes released than held");
        self.held = self.held.saturating_sub(bytes);
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Splits a budget over lanes: an equal share each, but never too little for one large record.
pub fn share_of(total: u64, lanes: usize) -> u64 {
    const SHARE_MIN: u64 = 2 << 20;
    (total / lanes.max(1) as u64).max(SHARE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn credit_returns_as_records_are_acknowledged() {
        let mut intake = Intake::new(1000);
        assert_eq!(intake.grant(), Some(1000));
        assert_eq!(intake.grant(), None);
        intake.fetched(400);
        assert_eq!(intake.grant(), None, "held and granted fill the budget");
        intake.released(100);
        assert_eq!(intake.grant(), None, "small grants are saved up");
        intake.released(300);
        assert_eq!(intake.grant(), Some(400));
    }

    #[test]
    fn a_batch_may_overshoot_its_credit_once() {
        let mut intake = Intake::new(1000);
        intake.grant();
        intake.fetched(1500);
        assert_eq!(intake.grant(), None);
        intake.released(1500);
        assert_eq!(intake.grant(), Some(1500), "the debt of 500 and the whole budget");
    }

    #[test]
    fn what_is_discarded_uses_up_credit_too() {
        let mut intake = Intake::new(1000);
        intake.grant();
        intake.discarded(1000);
        assert_eq!(intake.grant(), Some(1000));
    }

    #[test]
    fn a_smaller_budget_takes_no_credit_back() {
        let mut intake = Intake::new(1000);
        intake.grant();
        intake.set_budget(400);
        intake.fetched(700);
        intake.released(700);
        assert_eq!(intake.grant(), Some(100));
    }

    #[test]
    fn a_rewind_starts_over() {
        let mut intake = Intake::new(1000);
        intake.grant();
        intake.fetched(700);
        intake.reset();
        assert_eq!(intake.grant(), Some(1000));
    }

    #[test]
    fn shares_are_equal_but_never_tiny() {
        assert_eq!(share_of(64 << 20, 8), 8 << 20);
        assert_eq!(share_of(64 << 20, 0), 64 << 20);
        assert_eq!(share_of(8 << 20, 8), 2 << 20);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Grant,
        /// The World brings a batch, if it has credit left.
        Bring(u64, bool),
        /// So much of what is held is acknowledged.
        Acknowledge(u8),
        Budget(u64),
        Rewind,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => Just(Step::Grant),
            4 => (1u64..3_000, any::<bool>()).prop_map(|(bytes, is_wanted)| Step::Bring(bytes, is_wanted)),
            3 => any::<u8>().prop_map(Step::Acknowledge),
            1 => (1u64..8_000).prop_map(Step::Budget),
            1 => Just(Step::Rewind),
        ];
        prop::collection::vec(step, 0..80)
    }

    proptest! {
        /// Beside a World that counts its credit itself: both count the same, the budget is kept to within one batch, and
        /// once all is acknowledged the World has credit again.
        #[test]
        fn both_sides_count_the_same(steps in steps()) {
            let mut intake = Intake::new(1_000);
            let (mut budget, mut credit, mut held) = (1_000u64, 0i64, Vec::<u64>::new());
            for step in steps {
                match step {
                    Step::Grant => {
                        credit += intake.grant().map_or(0, signed);
                        let sum = signed(held.iter().sum()) + credit.max(0);
                        prop_assert!(sum <= signed(budget) || intake.grant().is_none(), "invariant A");
                    }
                    Step::Bring(bytes, is_wanted) if 0 < credit => {
                        credit -= signed(bytes);
                        if is_wanted {
                            intake.fetched(bytes);
                            held.push(bytes);
                        } else {
                            intake.discarded(bytes);
                        }
                    }
                    Step::Bring(..) => {}
                    Step::Acknowledge(place) if !held.is_empty() => {
                        let bytes = held.remove(usize::from(place) % held.len());
                        intake.released(bytes);
                    }
                    Step::Acknowledge(_) => {}
                    Step::Budget(bytes) => {
                        budget = bytes;
                        intake.set_budget(bytes);
                    }
                    Step::Rewind => {
                        (credit, held) = (0, Vec::new());
                        intake.reset();
                    }
                }
                prop_assert_eq!(intake.granted, credit, "invariant C");
                prop_assert_eq!(intake.held, held.iter().sum::<u64>());
            }
            held.into_iter().for_each(|bytes| intake.released(bytes));
            credit += intake.grant().map_or(0, signed);
            prop_assert!(0 < credit, "the World waits for credit that never comes");
        }
    }
}
