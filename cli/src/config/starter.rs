/// What `verbatim config init` writes: it runs as it stands, between two clusters on this machine.
pub const STARTER: &str = r#"# verbatim: copies topics from a source Kafka cluster to a target Kafka cluster, exactly once.
# Check this file with   verbatim check -c FILE   and both clusters with   verbatim check -c FILE --connect
# In any text: ${NAME}, ${NAME:-default} and ${file:/path/to/secret} are replaced.

# The flow's name. Its group, ledger and transactional ids on the target derive from it. Never change it: a flow under
# another name begins anew, and copies everything again.
name = "mirror"

# A stable id of this instance, if you have one: a restart then takes its lanes back at once. No two instances may
# share it.
# instance = "${HOSTNAME:-mirror-1}"

# Any Kafka client property, under Kafka's own name.
[source]
bootstrap.servers = "localhost:9092"
# security.protocol = "SASL_SSL"
# sasl.mechanism = "SCRAM-SHA-512"
# sasl.username = "mirror"
# sasl.password = "${file:/run/secrets/source-password}"
# ssl.ca.location = "/etc/ssl/source-ca.pem"

[target]
bootstrap.servers = "localhost:9192"

[topics]
include = [".*"]             # regular expressions, matched in full; internal topics are never taken
exclude = []
rename = "{topic}"           # the name on the target, e.g. "dc1.{topic}"
refresh = "30s"              # how soon new topics and partitions are seen
# replication.factor = 3     # of topics the mirror creates; else the target's own default

[delivery]
mode = "exactly-once"
start = "earliest"           # or "latest", or a time: "2026-11-29T10:00:00Z"; for what exists at first
commit.interval = "500ms"
lanes = 8                    # fixed when the ledger is created; at most this many instances share the work
# ledger.replication.factor = 3

# What the mirror does where it must not decide alone: it halts that partition, by name, and goes on with the rest.
[on]
gap = "halt"                 # the source deleted records before they were copied
truncated = "halt"           # the source's log was cut back below the position
recreated = "halt"           # the source or target topic was deleted and made again
oversized = "halt"           # the record is larger than the target takes

[limits]
memory = "512MiB"            # bounds every queue
"#;
