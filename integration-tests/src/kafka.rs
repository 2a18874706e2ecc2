//! A real, single-node Kafka broker in a container, on host ports that never change: it can be killed and
//! started again with the same address and the same data.

use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use testcontainers::core::{ContainerPort, ImageExt};
use testcontainers::runners::SyncRunner;
use testcontainers::{Container, GenericImage};

use crate::docker::{OWNER_LABEL, docker, owner};

pub const IMAGE_3_9: &str = "apache/kafka:3.9.1";
const IMAGE_DEFAULT: &str = "apache/kafka:4.1.0";
const START_TIMEOUT: Duration = Duration::from_secs(120);
const CLUSTER_ID_BYTES: usize = 22;

// Ports inside the container. `INTERNAL` serves the broker itself and the tools in the container, to whom
// the host's ports mean nothing.
const HOST_PORT: u16 = 9092;
const PROXIED_PORT: u16 = 9094;
const SASL_PORT: u16 = 9095;

/// What `VERBATIM_KAFKA_IMAGE` names, or Kafka 4.1.
pub fn default_image() -> String {
    std::env::var("VERBATIM_KAFKA_IMAGE")
        .ok()
        .filter(|image| !image.is_empty())
        .unwrap_or_else(|| IMAGE_DEFAULT.to_owned())
}

/// How a broker differs from the usual one.
#[derive(Debug, Clone)]
pub struct BrokerOptions {
    image: String,
    heap_mib: u32,
    properties: Vec<(String, String)>,
    proxied: bool,
    sasl_users: Vec<(String, String)>,
}

impl Default for BrokerOptions {
    fn default() -> BrokerOptions {
        BrokerOptions {
            image: default_image(),
            heap_mib: 400,
            properties: Vec::new(),
            proxied: false,
            sasl_users: Vec::new(),
        }
    }
}

impl BrokerOptions {
    pub fn kafka_3_9() -> BrokerOptions {
        BrokerOptions::default().image(IMAGE_3_9)
    }

    #[must_use]
    pub fn image(mut self, image: &str) -> BrokerOptions {
        image.clone_into(&mut self.image);
        self
    }

    #[must_use]
    pub fn heap_mib(mut self, heap_mib: u32) -> BrokerOptions {
        self.heap_mib = heap_mib;
        self
    }

    /// Any broker property, under Kafka's own name; a later one wins.
    #[must_use]
    pub fn property(mut self, name: &str, value: &str) -> BrokerOptions {
        self.properties.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a listener that is advertised under the port where a `Proxy` will stand.
    #[must_use]
    pub fn with_proxied_listener(mut self) -> BrokerOptions {
        self.proxied = true;
        self
    }

    /// Adds a SASL/PLAIN listener for these users and passwords, and an authorizer. Those who come without
    /// SASL may do everything; the users may do only what an ACL allows.
    #[must_use]
    pub fn with_sasl(mut self, users: &[(&str, &str)]) -> BrokerOptions {
        let owned = |&(user, password): &(&str, &str)| (user.to_owned(), password.to_owned());
        self.sasl_users = users.iter().map(owned).collect();
        self
    }
}

/// A running broker. Dropping it removes the container with its data.
pub struct Broker {
    container: Container<GenericImage>,
    image: String,
    port: u16,
    proxied: Option<ProxiedPorts>,
    sasl_port: Option<u16>,
    cluster_id: String,
}

#[derive(Debug, Clone, Copy)]
struct ProxiedPorts {
    /// Where the proxy listens, and what the broker tells its clients.
    advertised: u16,
    /// Where the broker really is.
    direct: u16,
}

impl Broker {
    /// Starts a broker and waits until it answers.
    pub fn start(options: &BrokerOptions) -> Result<Broker> {
        let port = free_port()?;
        let proxied = if options.proxied {
            Some(ProxiedPorts { advertised: free_port()?, direct: free_port()? })
        } else {
            None
        };
        let sasl_port = (!options.sasl_users.is_empty()).then(free_port).transpose()?;
        let cluster_id = cluster_id();
        let (name, tag) = options
            .image
            .rsplit_once(':')
            .with_context(|| format!("the image {} has no tag", options.image))?;

        let mut request = GenericImage::new(name, tag)
            .with_label(OWNER_LABEL, owner())
            .with_startup_timeout(START_TIMEOUT)
            .with_mapped_port(port, ContainerPort::Tcp(HOST_PORT));
        if let Some(ports) = proxied {
            request = request.with_mapped_port(ports.direct, ContainerPort::Tcp(PROXIED_PORT));
        }
        if let Some(sasl_port) = sasl_port {
            request = request.with_mapped_port(sasl_port, ContainerPort::Tcp(SASL_PORT));
        }
        let mut properties = base_properties();
        properties.extend(listener_properties(port, proxied, sasl_port));
        properties.extend(sasl_properties(&options.sasl_users));
        properties.extend(options.properties.iter().cloned());
        for (name, value) in properties {
            request = request.with_env_var(environment_name(&name), value);
        }
        let container = request
            .with_env_var("CLUSTER_ID", &cluster_id)
            .with_env_var("KAFKA_HEAP_OPTS", format!("-Xms128m -Xmx{}m", options.heap_mib))
            .start()
            .with_context(|| format!("{} does not start", options.image))?;
        let broker = Broker { container, image: options.image.clone(), port, proxied, sasl_port, cluster_id };
        broker.wait_until_ready()?;
        Ok(broker)
    }

    pub fn bootstrap(&self) -> String {
        loopback(self.port)
    }

    /// The address of the SASL listener.
    ///
    /// # Panics
    /// When the broker was not started `with_sasl`.
    pub fn sasl_bootstrap(&self) -> String {
        loopback(self.sasl_port.expect("a broker started with_sasl"))
    }

    /// What a client behind the proxy is given; a `Proxy` has to stand there.
    ///
    /// # Panics
    /// When the broker was not started `with_proxied_listener`.
    pub fn proxied_bootstrap(&self) -> String {
        loopback(self.proxied.expect("a broker started with_proxied_listener").advertised)
    }

    /// Where the proxy finds the broker.
    ///
    /// # Panics
    /// When the broker was not started `with_proxied_listener`.
    pub fn behind_proxy(&self) -> String {
        loopback(self.proxied.expect("a broker started with_proxied_listener").direct)
    }

    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    pub fn image(&self) -> &str {
        &self.image
    }

    /// Ends the broker at once, as a crash would. Its data stay.
    pub fn kill(&self) -> Result<()> {
        docker(&["kill", self.container.id()]).map(drop)
    }

    /// Ends the broker in good order. Its data stay.
    pub fn stop(&self) -> Result<()> {
        docker(&["stop", "-t", "60", self.container.id()]).map(drop)
    }

    /// Starts a killed or stopped broker again, at its old address over its old data, and waits until it answers.
    pub fn start_again(&self) -> Result<()> {
        docker(&["start", self.container.id()])?;
        self.wait_until_ready()
    }

    /// Freezes the broker: connections stay, nothing answers.
    pub fn pause(&self) -> Result<()> {
        docker(&["pause", self.container.id()]).map(drop)
    }

    pub fn unpause(&self) -> Result<()> {
        docker(&["unpause", self.container.id()]).map(drop)
    }

    /// Runs one of Kafka's own tools in the container, given the address it has to use there:
    /// `broker.tool("kafka-topics.sh", &["--list"])`. Slow, a JVM each.
    pub fn tool(&self, tool: &str, arguments: &[&str]) -> Result<String> {
        let path = format!("/opt/kafka/bin/{tool}");
        let mut words = vec!["exec", self.container.id(), &path, "--bootstrap-server", "localhost:9091"];
        words.extend(arguments);
        docker(&words)
    }

    /// What the broker has logged, all starts together.
    pub fn logs(&self) -> String {
        String::from_utf8_lossy(&self.container.stdout_to_vec().unwrap_or_default()).into_owned()
    }

    fn wait_until_ready(&self) -> Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        let client: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", self.bootstrap())
            // While it starts, each refused connection doubles the wait for the next one.
            .set("reconnect.backoff.max.ms", "200")
            .set_log_level(rdkafka::config::RDKafkaLogLevel::Emerg)
            .create()?;
        loop {
            let error = match client.fetch_metadata(None, Duration::from_secs(2)) {
                Ok(metadata) if !metadata.brokers().is_empty() => return Ok(()),
                Ok(_) => anyhow!("it lists no brokers"),
                Err(error) => anyhow!(error),
            };
            let running = docker(&["inspect", "-f", "{{.State.Running}}", self.container.id()])?;
            if running != "true" || deadline < Instant::now() {
                let logs = self.logs();
                let tail = &logs[logs.floor_char_boundary(logs.len().saturating_sub(4000))..];
                bail!("{} does not answer ({error}); its log ends so:\n{tail}", self.image);
            }
        }
    }
}

fn loopback(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// A host port that nobody uses, below the range from which the kernel serves outgoing connections: while a
/// broker is down, a client that keeps reconnecting could otherwise be given the broker's own port.
pub fn free_port() -> Result<u16> {
    const FIRST: u16 = 15_000;
    const COUNT: u16 = 15_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test processes that run side by side begin at different places.
    let start = u16::try_from(u64::from(std::process::id()) * 97 % u64::from(COUNT))?;
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (start + step % COUNT) % COUNT;
        if TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port")
}

/// Every broker is a cluster of its own, and Kafka wants 16 bytes in base 64.
fn cluster_id() -> String {
    static LAST: Mutex<u32> = Mutex::new(0);
    let mut last = LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *last += 1;
    let mut id = format!("verbatim{:08}{:04}", std::process::id(), *last);
    while id.len() < CLUSTER_ID_BYTES {
        id.push('A');
    }
    id
}

fn environment_name(property: &str) -> String {
    let name = property.replace('_', "__").replace('-', "___").replace('.', "_");
    format!("KAFKA_{}", name.to_uppercase())
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn base_properties() -> Vec<(String, String)> {
    owned(&[
        ("node.id", "1"),
        ("process.roles", "broker,controller"),
        ("controller.listener.names", "CONTROLLER"),
        ("controller.quorum.voters", "1@localhost:9093"),
        ("inter.broker.listener.name", "INTERNAL"),
        ("log.dirs", "/var/lib/kafka/data"),
        // A topic that appears because somebody asked for it would hide mistakes.
        ("auto.create.topics.enable", "false"),
        ("offsets.topic.replication.factor", "1"),
        ("transaction.state.log.replication.factor", "1"),
        ("transaction.state.log.min.isr", "1"),
        // Few, so that the first group and the first transaction do not wait for fifty logs to be made.
        ("offsets.topic.num.partitions", "4"),
        ("transaction.state.log.num.partitions", "4"),
        ("group.initial.rebalance.delay.ms", "0"),
        // How soon the broker sees that a transaction is over its time; the default of 10 s blurs every test.
        ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "1000"),
    ])
}

fn listener_properties(
    port: u16,
    proxied: Option<ProxiedPorts>,
    sasl_port: Option<u16>,
) -> Vec<(String, String)> {
    let mut listeners = vec![
        "CONTROLLER://localhost:9093".to_owned(),
        "INTERNAL://localhost:9091".to_owned(),
        format!("HOST://0.0.0.0:{HOST_PORT}"),
    ];
    let mut advertised = vec!["INTERNAL://localhost:9091".to_owned(), format!("HOST://{}", loopback(port))];
    if let Some(ports) = proxied {
        listeners.push(format!("PROXIED://0.0.0.0:{PROXIED_PORT}"));
        advertised.push(format!("PROXIED://{}", loopback(ports.advertised)));
    }
    if let Some(sasl_port) = sasl_port {
        listeners.push(format!("SASL://0.0.0.0:{SASL_PORT}"));
        advertised.push(format!("SASL://{}", loopback(sasl_port)));
    }
    owned(&[
        ("listeners", &listeners.join(",")),
        ("advertised.listeners", &advertised.join(",")),
        (
            "listener.security.protocol.map",
            "CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,HOST:PLAINTEXT,PROXIED:PLAINTEXT,SASL:SASL_PLAINTEXT",
        ),
    ])
}

fn sasl_properties(users: &[(String, String)]) -> Vec<(String, String)> {
    if users.is_empty() {
        return Vec::new();
    }
    let mut login = "org.apache.kafka.common.security.plain.PlainLoginModule required".to_owned();
    for (user, password) in users {
        login.push_str(&format!(" user_{user}=\"{password}\""));
    }
    login.push(';');
    owned(&[
        ("sasl.enabled.mechanisms", "PLAIN"),
        ("listener.name.sasl.sasl.enabled.mechanisms", "PLAIN"),
        ("listener.name.sasl.plain.sasl.jaas.config", &login),
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        ("super.users", "User:ANONYMOUS"),
    ])
}
