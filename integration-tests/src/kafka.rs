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

pub use crate::broker_options::{BrokerOptions, CERTIFICATE, IMAGE_3_9, default_image};
use crate::broker_options::{
    InnerPorts, PROXIED_PORT, ProxiedPorts, SASL_PORT, TLS_PORT, base_properties, environment_name,
    listener_properties, sasl_properties, tls_properties,
};
use crate::docker::{OWNER_LABEL, docker, owner};

const START_TIMEOUT: Duration = Duration::from_secs(120);
const CLUSTER_ID_BYTES: usize = 22;

/// A running broker. Dropping it removes the container with its data.
pub struct Broker {
    container: Container<GenericImage>,
    image: String,
    inner: InnerPorts,
    port: u16,
    proxied: Option<ProxiedPorts>,
    sasl_port: Option<u16>,
    tls_port: Option<u16>,
    cluster_id: String,
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
        let tls_port = options.tls.then(free_port).transpose()?;
        let cluster_id = cluster_id();
        let (name, tag) = options
            .image
            .rsplit_once(':')
            .with_context(|| format!("the image {} has no tag", options.image))?;

        let mut request =
            GenericImage::new(name, tag).with_label(OWNER_LABEL, owner()).with_startup_timeout(START_TIMEOUT);
        let inner = if options.on_host_network {
            request = request.with_network("host");
            InnerPorts { controller: free_port()?, internal: free_port()?, host: port }
        } else {
            let inner = InnerPorts::OF_CONTAINER;
            request = request.with_mapped_port(port, ContainerPort::Tcp(inner.host));
            inner
        };
        if let Some(ports) = proxied {
            request = request.with_mapped_port(ports.direct, ContainerPort::Tcp(PROXIED_PORT));
        }
        if let Some(sasl_port) = sasl_port {
            request = request.with_mapped_port(sasl_port, ContainerPort::Tcp(SASL_PORT));
        }
        if let Some(tls_port) = tls_port {
            request = request.with_mapped_port(tls_port, ContainerPort::Tcp(TLS_PORT));
        }
        let mut properties = base_properties();
        properties.extend(listener_properties(inner, port, proxied, sasl_port, tls_port));
        properties.extend(sasl_properties(&options.sasl_users));
        if options.tls {
            properties.extend(tls_properties());
        }
        properties.extend(options.properties.iter().cloned());
        for (name, value) in properties {
            request = request.with_env_var(environment_name(&name), value);
        }
        let container = request
            .with_env_var("CLUSTER_ID", &cluster_id)
            .with_env_var("KAFKA_HEAP_OPTS", format!("-Xms128m -Xmx{}m", options.heap_mib))
            .start()
            .with_context(|| format!("{} does not start", options.image))?;
        let image = options.image.clone();
        let broker = Broker { container, image, inner, port, proxied, sasl_port, tls_port, cluster_id };
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

    /// The address of the TLS listener.
    ///
    /// # Panics
    /// When the broker was not started `with_tls`.
    pub fn tls_bootstrap(&self) -> String {
        loopback(self.tls_port.expect("a broker started with_tls"))
    }

    /// Makes a user for the TLS listener.
    pub fn add_scram_user(&self, user: &str, password: &str) -> Result<()> {
        let secret = format!("SCRAM-SHA-512=[iterations=4096,password={password}]");
        let words = ["--alter", "--add-config", &secret, "--entity-type", "users", "--entity-name", user];
        self.tool("kafka-configs.sh", &words).map(drop)
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
        let internal = format!("localhost:{}", self.inner.internal);
        let mut words = vec!["exec", self.container.id(), &path, "--bootstrap-server", &internal];
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

pub(crate) fn loopback(port: u16) -> String {
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
