//! A proxy between a client and a broker that reads Kafka's framing, and delays, cuts or holds back requests
//! of a chosen kind. It changes no byte of what it passes on.
//!
//! The broker must advertise the proxy's address, or the client leaves it after the first answer:
//! see `BrokerOptions::with_proxied_listener`.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;

use crate::kafka::Broker;
use crate::wire;

pub const PRODUCE: i16 = 0;
pub const FETCH: i16 = 1;
pub const METADATA: i16 = 3;
pub const INIT_PRODUCER_ID: i16 = 22;
pub const ADD_PARTITIONS_TO_TXN: i16 = 24;
pub const END_TXN: i16 = 26;

/// What happens to a request that a rule picks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is passed on later; the connection waits behind it.
    Delay(Duration),
    /// The connection is cut, and the broker never sees the request.
    CutBefore,
    /// The broker gets the request, and the connection is cut: the answer is lost.
    CutAfter,
    /// The connection is cut and the request kept, for `deliver_held` to bring to the broker later:
    /// what a network may do to a request that its sender has given up.
    Hold,
}

/// Applies `action` to the next `times` requests of a kind that contain the given bytes.
#[derive(Debug, Clone)]
pub struct Rule {
    pub api_key: i16,
    pub containing: Vec<u8>,
    pub lacking: Vec<u8>,
    pub times: usize,
    pub action: Action,
}

impl Rule {
    pub fn once(api_key: i16, action: Action) -> Rule {
        Rule { api_key, containing: Vec::new(), lacking: Vec::new(), times: 1, action }
    }

    /// Only for requests that hold these bytes anywhere, such as a transactional id.
    #[must_use]
    pub fn containing(mut self, bytes: impl Into<Vec<u8>>) -> Rule {
        self.containing = bytes.into();
        self
    }

    /// Only for requests that hold these bytes nowhere.
    #[must_use]
    pub fn lacking(mut self, bytes: impl Into<Vec<u8>>) -> Rule {
        self.lacking = bytes.into();
        self
    }

    #[must_use]
    pub fn times(mut self, times: usize) -> Rule {
        self.times = times;
        self
    }

    fn picks(&self, frame: &[u8]) -> bool {
        let holds = |bytes: &[u8]| frame.windows(bytes.len().max(1)).any(|part| part == bytes);
        0 < self.times
            && api_key(frame) == Some(self.api_key)
            && (self.containing.is_empty() || holds(&self.containing))
            && (self.lacking.is_empty() || !holds(&self.lacking))
    }
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    held: Vec<Vec<u8>>,
    /// Requests seen, by kind, whatever became of them.
    seen: HashMap<i16, usize>,
    refusing: bool,
    closed: bool,
    connections: Vec<TcpStream>,
}

struct Shared {
    upstream: String,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct Proxy {
    address: String,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Stands where the broker's `PROXIED` listener says.
    pub fn start(broker: &Broker) -> Result<Proxy> {
        Proxy::between(&broker.proxied_bootstrap(), &broker.behind_proxy())
    }

    pub fn between(address: &str, upstream: &str) -> Result<Proxy> {
        let listener = TcpListener::bind(address).with_context(|| format!("no proxy at {address}"))?;
        let shared = Arc::new(Shared {
            upstream: upstream.to_owned(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Ok(Proxy { address: address.to_owned(), shared })
    }

    pub fn bootstrap(&self) -> &str {
        &self.address
    }

    pub fn add_rule(&self, rule: Rule) {
        self.shared.lock().rules.push(rule);
    }

    pub fn clear_rules(&self) {
        self.shared.lock().rules.clear();
    }

    /// How many requests of this kind clients have sent so far.
    pub fn seen(&self, api_key: i16) -> usize {
        self.shared.lock().seen.get(&api_key).copied().unwrap_or(0)
    }

    /// How many requests are held back now.
    pub fn held(&self) -> usize {
        self.shared.lock().held.len()
    }

    /// Waits until that many requests are held back; false when the time is up.
    pub fn wait_for_held(&self, count: usize, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.shared.lock();
        while state.held.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Brings the oldest held request to the broker, on a connection of its own, and gives the broker's answer,
    /// without its length: four bytes of correlation id, then the body. `None` when nothing is held.
    pub fn deliver_held(&self) -> Result<Option<Bytes>> {
        let frame = {
            let mut state = self.shared.lock();
            if state.held.is_empty() {
                return Ok(None);
            }
            state.held.remove(0)
        };
        wire::exchange(&self.shared.upstream, &frame).map(Some)
    }

    /// Cuts every connection there is; new ones are taken.
    pub fn cut_all(&self) {
        cut(&mut self.shared.lock());
    }

    /// While refusing, cuts what there is and closes every new connection at once: the broker is unreachable.
    pub fn refuse(&self, refusing: bool) {
        let mut state = self.shared.lock();
        state.refusing = refusing;
        if refusing {
            cut(&mut state);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        cut(&mut state);
        drop(state);
        // Wakes the accepting thread, which then sees that it is over and frees the port.
        TcpStream::connect(&self.address).ok();
    }
}

fn cut(state: &mut State) {
    for connection in state.connections.drain(..) {
        connection.shutdown(Shutdown::Both).ok();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        let mut state = shared.lock();
        if state.closed {
            return;
        }
        let Ok(client) = client else { continue };
        if state.refusing {
            continue;
        }
        let Ok(broker) = TcpStream::connect(&shared.upstream) else {
            continue;
        };
        // A request and its answer are small, and a delay of ours must be one that a rule asked for.
        client.set_nodelay(true).ok();
        broker.set_nodelay(true).ok();
        if let (Ok(client), Ok(broker)) = (client.try_clone(), broker.try_clone()) {
            state.connections.extend([client, broker]);
        }
        drop(state);
        let shared = Arc::clone(shared);
        thread::spawn(move || serve(&client, &broker, &shared));
    }
}

fn serve(client: &TcpStream, broker: &TcpStream, shared: &Shared) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut from, mut to) = (broker, client);
            io::copy(&mut from, &mut to).ok();
            close(client, broker);
        });
        forward_requests(client, broker, shared).ok();
        close(client, broker);
    });
}

fn close(client: &TcpStream, broker: &TcpStream) {
    client.shutdown(Shutdown::Both).ok();
    broker.shutdown(Shutdown::Both).ok();
}

/// Passes requests on until one side closes or a rule cuts.
fn forward_requests(mut client: &TcpStream, mut broker: &TcpStream, shared: &Shared) -> Result<()> {
    while let Some(frame) = wire::read_frame(&mut client)? {
        match judge(&frame, shared) {
            None => {}
            Some(Action::Delay(delay)) => thread::sleep(delay),
            Some(Action::CutBefore) => return Ok(()),
            Some(Action::CutAfter) => {
                // The client's side first: the answer must not slip through.
                client.shutdown(Shutdown::Both).ok();
                wire::write_frame(&mut broker, &frame)?;
                // A broker that finds the connection closed may drop the request unread.
                thread::sleep(Duration::from_millis(500));
                return Ok(());
            }
            Some(Action::Hold) => {
                shared.lock().held.push(frame);
                shared.changed.notify_all();
                return Ok(());
            }
        }
        wire::write_frame(&mut broker, &frame)?;
    }
    Ok(())
}

/// Counts the request, and finds and uses up the first rule that picks it.
fn judge(frame: &[u8], shared: &Shared) -> Option<Action> {
    let mut state = shared.lock();
    if let Some(api_key) = api_key(frame) {
        *state.seen.entry(api_key).or_default() += 1;
    }
    let rule = state.rules.iter_mut().find(|rule| rule.picks(frame))?;
    rule.times -= 1;
    Some(rule.action)
}

fn api_key(frame: &[u8]) -> Option<i16> {
    Some(i16::from_be_bytes(frame.get(..2)?.try_into().ok()?))
}
