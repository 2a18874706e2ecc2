//! Random walks: faults of every kind, crashes and restarts, then a heal; at the end, exactly once.

use crate::kit::{Answer, Clusters, Judge, Kit, ScriptedWorld};
use verbatim_core::Exit;
use verbatim_core::batch::Acknowledged;
use verbatim_core::command::{Command, LaneCommand};
use verbatim_core::event::{LaneEvent, Refused, Step};
use verbatim_core::failure::{Failure, Refusal, Trouble};

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn failure(dice: &mut Dice) -> Failure {
    let text = "random".to_string();
    match dice.roll(5) {
        0 => Failure::Retry(text),
        1 => Failure::Abort(text),
        2 => Failure::Fenced(text),
        3 => Failure::Unknown(text),
        _ => Failure::Fatal(Trouble::Passing(text)),
    }
}

/// What goes wrong with a command, now and then.
fn fault(dice: &mut Dice, command: &LaneCommand) -> Answer {
    if dice.roll(12) != 0 {
        return Answer::Obey;
    }
    let failure = failure(dice);
    let step = match command {
        LaneCommand::Open => Step::Open,
        LaneCommand::Replay { .. } => Step::Replay,
        LaneCommand::ReadClaims => Step::ReadClaims,
        LaneCommand::Prepare { .. } => Step::Prepare,
        LaneCommand::Abort => Step::Abort,
        LaneCommand::Settle { .. } => {
            let failed = vec![LaneEvent::Failed(Step::Settle, failure.clone())];
            // Only an unknown outcome, or a fence, may hide a commit.
            let may_hide = matches!(failure, Failure::Unknown(_) | Failure::Fenced(_));
            return if may_hide && dice.roll(2) == 0 {
                Answer::ObeyAndSay(failed)
            } else {
                Answer::Instead(failed)
            };
        }
        LaneCommand::Produce { batch, .. } => {
            let refused = |refusal| Err(Refused { refusal, record: None });
            let outcome = match dice.roll(4) {
                0 => Ok(Acknowledged { accepted: 10, acknowledged: 9, run: None }),
                1 => refused(Refusal::TooLarge("random".into())),
                _ => refused(Refusal::Collateral(failure)),
            };
            let acked = vec![LaneEvent::Acked(*batch, outcome)];
            return if dice.roll(2) == 0 { Answer::ObeyAndSay(acked) } else { Answer::Instead(acked) };
        }
        _ => return Answer::Obey,
    };
    Answer::Instead(vec![LaneEvent::Failed(step, failure)])
}

fn walk(seed: u64) {
    let mut dice = Dice(seed);
    let mut clusters = Clusters::new();
    clusters.source_topic("orders", 3);
    clusters.source_topic("payments", 2);
    for crash in 0..4 {
        for _ in 0..6 {
            let (topic, partitions) = if dice.roll(2) == 0 { ("orders", 3) } else { ("payments", 2) };
            let partition = dice.roll(partitions) as i32;
            clusters.append(topic, partition, dice.roll(30) as usize);
            clusters.append_holes(topic, partition, dice.roll(3) as usize);
        }
        let mut faults = Dice(dice.roll(1 << 31));
        let mut world =
            ScriptedWorld::new(clusters, 2).shuffled(dice.roll(1 << 31)).scripted(move |_, command| {
                match command {
                    Command::Lane(_, _, command) => fault(&mut faults, command),
                    _ => Answer::Obey,
                }
            });
        world.records_max = 1 + dice.roll(12) as usize;
        let steps = 20 + dice.roll(500) as u32;
        let kit = Kit::new(world).with(|flow| {
            flow.incarnation = format!("i-{crash}");
            flow.limits.transaction_records_max = 1 + dice.roll(40);
        });
        let (exit, world) = kit.run_for(steps);
        assert!(matches!(exit, None | Some(Exit::Done)), "seed {seed}: {exit:?}");
        Judge::new(&world.clusters).sound();
        clusters = world.clusters;
    }
    let world = ScriptedWorld::new(clusters, 2).shuffled(seed);
    Kit::new(world).with(|flow| flow.incarnation = "last".into()).run_to_done();
}

#[test]
fn random_walks_end_with_everything_copied_once() {
    for seed in 0..150 {
        walk(seed);
    }
}
