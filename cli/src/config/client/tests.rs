use super::*;
use crate::config::place::{Kind, SourceText};
use std::sync::Arc;

fn property(layer: usize, name: &str, value: &str) -> Property {
    let text = format!("{name} = {value}");
    let source = Arc::new(SourceText { name: format!("{layer}.toml"), text, kind: Kind::File });
    Property {
        name: name.into(),
        value: value.into(),
        name_place: Place::new(&source, 0..name.len()),
        value_place: Place::new(&source, name.len() + 3..name.len() + 3 + value.len()),
        layer,
    }
}

fn ask(name: &str, value: &str) -> Verdict {
    match runtime_real::check_property(name, value) {
        Ok(()) => Verdict::Taken,
        Err(runtime_real::BadProperty::Unknown) => Verdict::Unknown,
        Err(runtime_real::BadProperty::Invalid(why)) => Verdict::Invalid(why),
    }
}

fn translated(side: Side, properties: &[(&str, &str)]) -> Vec<(String, String)> {
    let properties = properties.iter().map(|(name, value)| property(1, name, value)).collect();
    translate(side, properties, &ask).unwrap().iter().map(|(n, v)| (n.clone(), v.clone())).collect()
}

#[track_caller]
fn check(side: Side, properties: &[(&str, &str)], expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    assert_eq!(translated(side, properties), expected);
}

fn refused(side: Side, name: &str, value: &str) -> String {
    let errors = translate(side, vec![property(1, name, value)], &ask).unwrap_err();
    let text = |error: &ConfigError| {
        format!("{error}{}", error.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default())
    };
    errors.iter().map(text).collect::<Vec<_>>().join("\n")
}

#[test]
fn java_names_become_librdkafkas() {
    check(Side::Source, &[("fetch.max.wait.ms", "100")], &[("fetch.wait.max.ms", "100")]);
    check(Side::Source, &[("metadata.broker.list", "a:1")], &[("bootstrap.servers", "a:1")]);
    check(Side::Source, &[("request.timeout.ms", "9000")], &[("socket.timeout.ms", "9000")]);
    check(Side::Target, &[("buffer.memory", "33554432")], &[("queue.buffering.max.kbytes", "32768")]);
    check(Side::Target, &[("compression.type", "zstd")], &[("compression.type", "zstd")]);
    check(Side::Target, &[("send.buffer.bytes", "-1")], &[("socket.send.buffer.bytes", "0")]);
    check(
        Side::Target,
        &[("ssl.endpoint.identification.algorithm", "")],
        &[("ssl.endpoint.identification.algorithm", "none")],
    );
}

#[test]
fn what_the_mirror_does_anyway_may_be_said() {
    let said = [
        ("acks", "all"),
        ("acks", "-1"),
        ("enable.idempotence", "true"),
        ("retries", "2147483647"),
        ("enable.auto.commit", "false"),
        ("isolation.level", "read_committed"),
        ("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer"),
    ];
    for (name, value) in said {
        check(Side::Target, &[(name, value)], &[]);
    }
}

#[test]
fn jaas_becomes_user_and_password() {
    let module = "org.apache.kafka.common.security.plain.PlainLoginModule";
    check(
        Side::Source,
        &[
            ("sasl.mechanism", "PLAIN"),
            ("sasl.jaas.config", &format!("{module} required username=\"u\" password=\"p\";")),
        ],
        &[("sasl.mechanism", "PLAIN"), ("sasl.password", "p"), ("sasl.username", "u")],
    );
    let bearer = "a.OAuthBearerLoginModule required clientId=\"c\" clientSecret=\"s\" extension_pool=\"x\";";
    check(
        Side::Source,
        &[("sasl.jaas.config", bearer)],
        &[
            ("sasl.oauthbearer.client.id", "c"),
            ("sasl.oauthbearer.client.secret", "s"),
            ("sasl.oauthbearer.extensions", "pool=x"),
        ],
    );
    let kerberos = refused(Side::Source, "sasl.jaas.config", "com.sun.Krb5LoginModule required;");
    assert!(kerberos.contains("the login module Krb5LoginModule is not in this build"), "{kerberos}");
}

#[test]
fn stores_are_translated_where_they_can_be() {
    check(
        Side::Source,
        &[
            ("ssl.keystore.location", "/k.p12"),
            ("ssl.keystore.password", "x"),
            ("ssl.keystore.type", "PKCS12"),
        ],
        &[("ssl.keystore.location", "/k.p12"), ("ssl.keystore.password", "x")],
    );
    check(
        Side::Source,
        &[("ssl.truststore.location", "/ca.jks"), ("ssl.truststore.type", "PEM")],
        &[("ssl.ca.location", "/ca.jks")],
    );
    check(
        Side::Source,
        &[("ssl.keystore.location", "/me.pem")],
        &[("ssl.certificate.location", "/me.pem"), ("ssl.key.location", "/me.pem")],
    );
    let keys = refused(Side::Source, "ssl.keystore.location", "/k.jks");
    assert!(keys.starts_with("1.toml:1:25: key stores of type JKS can be read by Java only"), "{keys}");
    assert!(keys.contains("keytool -importkeystore -srckeystore /k.jks"), "{keys}");
    let trust = refused(Side::Source, "ssl.truststore.location", "/t.jks");
    assert!(trust.contains("keytool -list -rfc -keystore /t.jks"), "{trust}");
}

#[test]
fn what_would_break_a_promise_is_refused_with_the_reason() {
    for (name, value, why) in [
        ("enable.idempotence", "false", "double or reorder"),
        ("acks", "1", "could be lost with one broker"),
        ("isolation.level", "read_uncommitted", "aborted records would be copied"),
        ("auto.offset.reset", "latest", "delivery.start"),
        ("enable.auto.commit", "true", "ledger"),
        ("transactional.id", "x", "fences"),
        ("group.id", "x", "derives from the flow's name"),
        ("group.instance.id", "x", "use instance"),
        ("allow.auto.create.topics", "true", "wrong partitions"),
        ("enable.partition.eof", "true", "itself"),
        ("check.crcs", "false", "damaged"),
        ("max.in.flight.requests.per.connection", "6", "at most 5"),
        ("retries", "0", "given up before its transaction is"),
        ("delivery.timeout.ms", "1000", "transaction.timeout.ms"),
        ("fetch.max.bytes", "1000", "limits.memory"),
        ("session.timeout.ms", "1000", "8 s"),
        ("request.timeout.ms", "1000", "must outlast a commit"),
        ("client.id", "x", "tell them apart"),
        ("max.request.size", "1000000", "own limits decide what is too large"),
        ("message.max.bytes", "1000000", "own limits decide what is too large"),
        ("value.serializer", "a.StringSerializer", "byte for byte"),
        ("partition.assignment.strategy", "cooperative-sticky", "all at once"),
        ("sasl.mechanism", "GSSAPI", "not a SASL mechanism of this build"),
    ] {
        let refused = refused(Side::Target, name, value);
        assert!(refused.contains(why), "{name}: {refused}");
    }
}

/// A value for each property that people set, other than what the mirror would set by itself.
fn example(name: &str) -> &'static str {
    match name {
        "bootstrap.servers" => "a:1",
        "broker.address.family" => "v4",
        "client.dns.lookup" => "resolve_canonical_bootstrap_servers_only",
        "client.rack" => "r1",
        "debug" => "broker",
        "security.protocol" => "SASL_SSL",
        "sasl.mechanism" => "SCRAM-SHA-512",
        "sasl.jaas.config" => "a.PlainLoginModule required username=\"u\" password=\"p\";",
        "sasl.oauthbearer.config" => "principal=x",
        "sasl.oauthbearer.extensions" => "a=b",
        "sasl.oauthbearer.method" => "oidc",
        "sasl.oauthbearer.token.endpoint.url" => "https://host/token",
        "socket.keepalive.enable" => "true",
        "socket.nagle.disable" => "false",
        "ssl.endpoint.identification.algorithm" => "none",
        "ssl.keystore.location" => "/k.p12",
        "ssl.truststore.location" => "/ca.pem",
        "ssl.keystore.type" => "PKCS12",
        "ssl.truststore.type" => "PEM",
        "ssl.cipher.suites" => "ECDHE-RSA-AES256-GCM-SHA384",
        "acks" => "all",
        "buffer.memory" => "33554432",
        "compression.type" => "zstd",
        "compression.level" => "5",
        "max.in.flight.requests.per.connection" => "2",
        "linger.ms" => "7",
        "fetch.min.bytes" => "2",
        text if text.starts_with("ssl.") || text.starts_with("sasl.") => "text",
        _ => "20001",
    }
}

/// No property is dropped in silence: each reaches a client with its value, or is refused.
#[test]
fn an_accepted_property_reaches_the_clients() {
    // These only say how others are meant, or what is done anyway.
    let says_nothing_alone = ["ssl.keystore.type", "ssl.truststore.type", "acks"];
    let only_elsewhere =
        [(Side::Target, "debug"), (Side::Target, "request.timeout.ms"), (Side::Target, "socket.timeout.ms")];
    for side in [Side::Source, Side::Target] {
        for name in names::usual() {
            let accepted = match translate(side, vec![property(1, name, example(name))], &ask) {
                Ok(accepted) => accepted,
                Err(errors) => {
                    let misplaced = names::misplaced(side, names::canonical(name)).is_some()
                        || (name == "buffer.memory" && side == Side::Source);
                    assert!(misplaced || only_elsewhere.contains(&(side, name)), "{side}.{name}: {errors:?}");
                    continue;
                }
            };
            assert_eq!(accepted.is_empty(), says_nothing_alone.contains(&name), "{side}.{name}");
            for (key, value) in accepted.iter() {
                let settings = settings(&accepted);
                let reaches = runtime_real::client_configs(&settings, side)
                    .iter()
                    .any(|(_, config)| config.get(key) == Some(value.as_str()));
                // The mirror's own bound on what is queued takes this one in.
                let is_bound = key == "queue.buffering.max.kbytes";
                assert!(reaches || is_bound, "{side}.{name}: no client is told");
            }
        }
    }
}

fn settings(properties: &Properties) -> runtime_real::Settings {
    runtime_real::Settings {
        source: BTreeMap::clone(properties),
        target: BTreeMap::clone(properties),
        flow: verbatim_core::config::FlowName::new("f").unwrap(),
        lanes: 1,
        instance: None,
        memory_bytes: 64 << 20,
    }
}

#[test]
fn properties_without_effect_are_sent_to_the_other_side() {
    let refused = |side, name| refused(side, name, "1000");
    assert!(refused(Side::Source, "linger.ms").contains("(set it under [target])"));
    assert!(
        refused(Side::Source, "coordinator.query.interval.ms")
            .contains("the group of instances lives on the target")
    );
    assert!(refused(Side::Target, "fetch.max.wait.ms").contains("(set it under [source])"));
    assert!(refused(Side::Target, "client.rack").contains("never from a follower"));
}

#[test]
fn unknown_and_java_only_names_differ() {
    let unknown = refused(Side::Source, "sasl.mechanisn", "PLAIN");
    assert_eq!(
        unknown,
        "1.toml:1:1: unknown client property source.sasl.mechanisn (did you mean sasl.mechanism?)"
    );
    let java = refused(Side::Source, "max.poll.records", "5");
    assert!(java.contains("known to the Java client only"), "{java}");
    let value = refused(Side::Source, "security.protocol", "SLL");
    assert!(value.starts_with("1.toml:1:21: security.protocol cannot have this value"), "{value}");
}

#[test]
fn two_names_of_one_property_must_agree_unless_one_layer_is_stronger() {
    let pair = |first, second| {
        translate(
            Side::Source,
            vec![
                property(first, "sasl.mechanism", "PLAIN"),
                property(second, "sasl.mechanisms", "OAUTHBEARER"),
            ],
            &ask,
        )
    };
    let error = pair(1, 1).unwrap_err().remove(0);
    assert!(error.message.contains("sasl.mechanism and sasl.mechanisms are one property"), "{error}");
    assert_eq!(pair(1, 2).unwrap()["sasl.mechanism"], "OAUTHBEARER");
    assert_eq!(pair(2, 1).unwrap()["sasl.mechanism"], "PLAIN");
}
