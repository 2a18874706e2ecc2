use super::{Clusters, Judge, ScriptedWorld};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use verbatim_core::config::{Flow, FlowName, Limits, Start, Until};
use verbatim_core::route::{Rename, TopicFilter};
use verbatim_core::{Exit, Mirror, World, drive};

/// A flow of two lanes that copies every topic to its end.
pub fn flow() -> Flow {
    Flow {
        name: FlowName::new("f").unwrap(),
        incarnation: "i-1".into(),
        filter: TopicFilter::new(&[".*".into()], &[]).unwrap(),
        rename: Rename::identity(),
        refresh: Duration::from_secs(30),
        replication_factor: None,
        start: Start::Earliest,
        commit_interval: Duration::from_millis(100),
        lanes: 2,
        ledger_replication_factor: None,
        intake_bytes_max: 8 << 20,
        until: Some(Until::End),
        wait_open: Duration::from_secs(60),
        limits: Limits::default(),
    }
}

/// One mirror's run, from its start to its end.
pub struct Kit {
    pub world: ScriptedWorld,
    pub flow: Flow,
}

impl Kit {
    pub fn new(world: ScriptedWorld) -> Kit {
        Kit { world, flow: flow() }
    }

    pub fn with(mut self, change: impl FnOnce(&mut Flow)) -> Kit {
        change(&mut self.flow);
        self
    }

    /// Runs the mirror until it ends.
    #[track_caller]
    pub fn run(self) -> (Exit, ScriptedWorld) {
        let Kit { mut world, flow } = self;
        let mut mirror = Mirror::new(world.now(), flow);
        let exit = block_on(drive(&mut mirror, &mut world));
        (exit, world)
    }

    /// Runs the mirror for so many events, then has it vanish as a killed process does.
    pub fn run_for(self, events: u32) -> (Option<Exit>, ScriptedWorld) {
        let Kit { mut world, flow } = self;
        let mut mirror = Mirror::new(world.now(), flow);
        for _ in 0..events {
            mirror.take_commands().into_iter().for_each(|command| world.submit(command));
            if let Some(exit) = mirror.exit() {
                return (Some(exit), world);
            }
            let (now, event) = block_on(world.next(mirror.wake_at()));
            mirror.handle(now, event);
        }
        (None, world)
    }

    /// Runs to `Done`, and then everything must be on the target, exactly once.
    #[track_caller]
    pub fn run_to_done(self) -> ScriptedWorld {
        let (exit, world) = self.run();
        assert_eq!(exit, Exit::Done);
        Judge::new(&world.clusters).all_copied();
        world
    }
}

impl From<Clusters> for Kit {
    fn from(clusters: Clusters) -> Kit {
        Kit::new(ScriptedWorld::new(clusters, 2))
    }
}

/// Nothing in a scripted world is ever waited for.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}
