//! What signals do to a running mirror.

use runtime_real::Stopper;
use tokio::signal::unix::{Signal, SignalKind, signal};
use verbatim_core::event::Urgency;

pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// From now on these signals end nothing by themselves. To be called within an event loop.
    pub(super) fn catch() -> Option<Signals> {
        Signals::try_catch()
            .inspect_err(|error| {
                tracing::warn!(%error, "signals cannot be heeded: this process can only be killed");
            })
            .ok()
    }

    fn try_catch() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The first signal to stop settles and leaves; another one aborts. Nothing is lost either way.
    pub(super) async fn heed(mut self, stopper: Stopper) {
        let mut urgency = Urgency::Settle;
        loop {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
                _ = self.hangup.recv() => {
                    // A closed terminal and `systemctl reload` send it too, and neither asks for an end.
                    tracing::warn!(
                        "SIGHUP changes nothing: this version does not read the topic rules again; restart to change them"
                    );
                    continue;
                }
            }
            match urgency {
                Urgency::Settle => tracing::info!("stopping: settling what was read; signal again to abort"),
                Urgency::Now => tracing::info!("stopping at once"),
            }
            stopper.stop(urgency);
            urgency = Urgency::Now;
        }
    }
}
