//! What a broker is started with: its image, its listeners and its properties.

use crate::kafka::loopback;

pub const IMAGE_3_9: &str = "apache/kafka:3.9.1";
const IMAGE_DEFAULT: &str = "apache/kafka:4.1.0";

// Ports inside the container.
pub(crate) const PROXIED_PORT: u16 = 9094;
pub(crate) const SASL_PORT: u16 = 9095;
pub(crate) const TLS_PORT: u16 = 9096;

/// What the brokers' TLS listener shows; a client has to trust it.
pub const CERTIFICATE: &str = include_str!("tls/certificate.pem");
const KEY: &str = include_str!("tls/key.pem");

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
    pub(crate) image: String,
    pub(crate) heap_mib: u32,
    pub(crate) properties: Vec<(String, String)>,
    pub(crate) proxied: bool,
    pub(crate) sasl_users: Vec<(String, String)>,
    pub(crate) tls: bool,
    pub(crate) on_host_network: bool,
}

impl Default for BrokerOptions {
    fn default() -> BrokerOptions {
        BrokerOptions {
            image: default_image(),
            heap_mib: 400,
            properties: Vec::new(),
            proxied: false,
            sasl_users: Vec::new(),
            tls: false,
            on_host_network: false,
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

    /// Adds a SASL listener for these users and passwords (PLAIN), or whoever a token names (OAUTHBEARER), and an
    /// authorizer. Those who come without SASL may do everything; the users may do only what an ACL allows.
    #[must_use]
    pub fn with_sasl(mut self, users: &[(&str, &str)]) -> BrokerOptions {
        let owned = |&(user, password): &(&str, &str)| (user.to_owned(), password.to_owned());
        self.sasl_users = users.iter().map(owned).collect();
        self
    }

    /// Adds a listener for SCRAM-SHA-512 over TLS. Its users are made with `Broker::add_scram_user`.
    #[must_use]
    pub fn with_tls(mut self) -> BrokerOptions {
        self.tls = true;
        self
    }

    /// Puts the broker on the host's own network: Docker's proxy between a port of the host and one of a container
    /// copies every byte once more, which a test does not notice and a race does.
    #[must_use]
    pub fn on_host_network(mut self) -> BrokerOptions {
        self.on_host_network = true;
        self
    }
}

/// Ports inside the broker's network. `internal` serves the broker itself and the tools in the container, to whom
/// the host's ports mean nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InnerPorts {
    pub controller: u16,
    pub internal: u16,
    pub host: u16,
}

impl InnerPorts {
    pub const OF_CONTAINER: InnerPorts = InnerPorts { controller: 9093, internal: 9091, host: 9092 };
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ProxiedPorts {
    /// Where the proxy listens, and what the broker tells its clients.
    pub advertised: u16,
    /// Where the broker really is.
    pub direct: u16,
}

pub(crate) fn environment_name(property: &str) -> String {
    let name = property.replace('_', "__").replace('-', "___").replace('.', "_");
    format!("KAFKA_{}", name.to_uppercase())
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

pub(crate) fn base_properties() -> Vec<(String, String)> {
    owned(&[
        ("node.id", "1"),
        ("process.roles", "broker,controller"),
        ("controller.listener.names", "CONTROLLER"),
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

pub(crate) fn listener_properties(
    inner: InnerPorts,
    port: u16,
    proxied: Option<ProxiedPorts>,
    sasl_port: Option<u16>,
    tls_port: Option<u16>,
) -> Vec<(String, String)> {
    let internal = format!("INTERNAL://localhost:{}", inner.internal);
    let controller = format!("localhost:{}", inner.controller);
    let mut listeners = vec![
        format!("CONTROLLER://{controller}"),
        internal.clone(),
        format!("HOST://0.0.0.0:{}", inner.host),
    ];
    let mut advertised = vec![internal, format!("HOST://{}", loopback(port))];
    if let Some(ports) = proxied {
        listeners.push(format!("PROXIED://0.0.0.0:{PROXIED_PORT}"));
        advertised.push(format!("PROXIED://{}", loopback(ports.advertised)));
    }
    if let Some(sasl_port) = sasl_port {
        listeners.push(format!("SASL://0.0.0.0:{SASL_PORT}"));
        advertised.push(format!("SASL://{}", loopback(sasl_port)));
    }
    if let Some(tls_port) = tls_port {
        listeners.push(format!("TLS://0.0.0.0:{TLS_PORT}"));
        advertised.push(format!("TLS://{}", loopback(tls_port)));
    }
    owned(&[
        ("controller.quorum.voters", &format!("1@{controller}")),
        ("listeners", &listeners.join(",")),
        ("advertised.listeners", &advertised.join(",")),
        (
            "listener.security.protocol.map",
            "CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,HOST:PLAINTEXT,PROXIED:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL",
        ),
    ])
}

pub(crate) fn sasl_properties(users: &[(String, String)]) -> Vec<(String, String)> {
    if users.is_empty() {
        return Vec::new();
    }
    let mut login = "org.apache.kafka.common.security.plain.PlainLoginModule required".to_owned();
    for (user, password) in users {
        login.push_str(&format!(" user_{user}=\"{password}\""));
    }
    login.push(';');
    owned(&[
        ("sasl.enabled.mechanisms", "PLAIN,OAUTHBEARER"),
        ("listener.name.sasl.sasl.enabled.mechanisms", "PLAIN,OAUTHBEARER"),
        ("listener.name.sasl.plain.sasl.jaas.config", &login),
        // Without a validator of its own the broker takes tokens that nobody signed: for tests, that is what it takes.
        (
            "listener.name.sasl.oauthbearer.sasl.jaas.config",
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \
             unsecuredLoginStringClaim_sub=\"broker\";",
        ),
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        ("super.users", "User:ANONYMOUS"),
    ])
}

pub(crate) fn tls_properties() -> Vec<(String, String)> {
    // A property is one line; Kafka takes any white space between the parts of a PEM text.
    let one_line = |pem: &str| pem.trim().replace('\n', " ");
    owned(&[
        ("listener.name.tls.sasl.enabled.mechanisms", "SCRAM-SHA-512"),
        (
            "listener.name.tls.scram-sha-512.sasl.jaas.config",
            "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        ),
        ("listener.name.tls.ssl.keystore.type", "PEM"),
        ("listener.name.tls.ssl.keystore.certificate.chain", &one_line(CERTIFICATE)),
        ("listener.name.tls.ssl.keystore.key", &one_line(KEY)),
    ])
}
