//! Names of client properties: which are one, where each belongs, and which only Java knows.

use crate::config::schema;
use verbatim_core::failure::Side;

/// The name under which librdkafka keeps a property that has several, Java's among them.
pub(super) fn canonical(name: &str) -> &str {
    match name {
        "metadata.broker.list" => "bootstrap.servers",
        "sasl.mechanisms" => "sasl.mechanism",
        "queue.buffering.max.ms" => "linger.ms",
        "compression.codec" => "compression.type",
        "max.in.flight" => "max.in.flight.requests.per.connection",
        "fetch.max.wait.ms" => "fetch.wait.max.ms",
        // librdkafka's own request.timeout.ms bounds the brokers' wait for replicas only.
        "request.timeout.ms" => "socket.timeout.ms",
        other => other,
    }
}

const PRODUCER: [&str; 10] = [
    "linger.ms",
    "batch.size",
    "batch.num.messages",
    "compression.type",
    "compression.level",
    "acks",
    "max.in.flight.requests.per.connection",
    "queue.buffering.max.kbytes",
    "sticky.partitioning.linger.ms",
    "transaction.timeout.ms",
];

const FETCH: [&str; 4] =
    ["fetch.min.bytes", "fetch.wait.max.ms", "fetch.queue.backoff.ms", "fetch.error.backoff.ms"];

const GROUP: [&str; 1] = ["coordinator.query.interval.ms"];

/// Whether a property does nothing on `side`; then where it belongs, and why.
pub(super) fn misplaced(side: Side, name: &str) -> Option<(Side, &'static str)> {
    match side {
        Side::Source if PRODUCER.contains(&name) => Some((Side::Target, "nothing is produced to the source")),
        Side::Source if GROUP.contains(&name) => {
            Some((Side::Target, "the group of instances lives on the target"))
        }
        Side::Target if FETCH.contains(&name) => Some((Side::Source, "records are fetched from the source")),
        Side::Target if name == "client.rack" => {
            Some((Side::Source, "the ledger is read from its leaders, never from a follower that may lag"))
        }
        Side::Source | Side::Target => None,
    }
}

/// Properties of the Java clients without a counterpart in librdkafka.
pub(super) fn is_java_only(name: &str) -> bool {
    const NAMES: [&str; 28] = [
        "auto.include.jmx.reporter",
        "config.providers",
        "connections.max.reauth.ms",
        "default.api.timeout.ms",
        "enable.metrics.push",
        "exclude.internal.topics",
        "interceptor.classes",
        "leave.group.on.close",
        "max.block.ms",
        "max.poll.records",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "sasl.client.callback.handler.class",
        "sasl.login.class",
        "security.providers",
        "socket.connection.setup.timeout.max.ms",
        "ssl.enabled.protocols",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "throw.on.fetch.stable.offset.unsupported",
        "transaction.two.phase.commit.enable",
        "compression.gzip.level",
    ];
    const PREFIXES: [&str; 5] =
        ["metrics.", "sasl.login.", "sasl.kerberos.", "sasl.oauthbearer.jwks.", "compression."];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// What people set.
const USUAL: [&str; 53] = [
    "bootstrap.servers",
    "broker.address.family",
    "client.dns.lookup",
    "client.rack",
    "connections.max.idle.ms",
    "debug",
    "fetch.max.wait.ms",
    "buffer.memory",
    "metadata.max.age.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "sasl.jaas.config",
    "sasl.mechanism",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "socket.connection.setup.timeout.ms",
    "socket.keepalive.enable",
    "socket.nagle.disable",
    "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
    "socket.timeout.ms",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.cipher.suites",
    "ssl.crl.location",
    "ssl.curves.list",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.sigalgs.list",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.type",
    "topic.metadata.refresh.interval.ms",
];

/// The names that a mistyped one may have meant.
pub(super) fn usual() -> impl Iterator<Item = &'static str> {
    USUAL.into_iter().chain(PRODUCER).chain(FETCH).chain(GROUP)
}

/// The usual name nearest to a mistyped one.
pub(in crate::config) fn nearest(name: &str) -> Option<&'static str> {
    schema::near(name, usual())
}
