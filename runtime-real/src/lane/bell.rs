//! Waking a lane's thread that waits in its client.

use crate::ffi::Waker;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rings in a thread's client: for a command, or because the lane is abandoned. Nobody hears it before there is a
/// client, and a client that has not begun to wait hears it when it does.
#[derive(Clone, Default)]
pub(super) struct Bell(Arc<Mutex<Option<Waker>>>);

impl Bell {
    pub(super) fn ring(&self) {
        if let Some(waker) = &*self.lock() {
            waker.wake();
        }
    }

    /// Has it ring in this client until what is returned is dropped: a waker holds its client.
    pub(super) fn hang(&self, waker: Waker) -> Hung {
        *self.lock() = Some(waker);
        Hung(self.clone())
    }

    /// Whether anybody would hear it.
    #[cfg(test)]
    pub(super) fn is_hung(&self) -> bool {
        self.lock().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Hung(Bell);

impl Drop for Hung {
    fn drop(&mut self) {
        let waker = self.0.lock().take();
        drop(waker);
    }
}
