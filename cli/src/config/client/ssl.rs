//! Java's key stores and trust stores, which librdkafka knows only in part: PKCS#12 and PEM, never JKS.

use super::Property;
use crate::config::error::ConfigError;
use std::collections::BTreeMap;

type Stores = BTreeMap<String, Property>;

/// Sets apart the properties that only make sense together.
pub(super) fn separate(properties: Vec<Property>) -> (Vec<Property>, Stores) {
    let is_store = |name: &str| name.starts_with("ssl.keystore.") || name.starts_with("ssl.truststore.");
    let (stores, others): (Vec<Property>, Vec<Property>) =
        properties.into_iter().partition(|property| is_store(&property.name));
    (others, stores.into_iter().map(|property| (property.name.clone(), property)).collect())
}

pub(super) fn translate(mut stores: Stores) -> Result<Vec<(String, String, Property)>, ConfigError> {
    let mut pairs = Vec::new();
    key_store(&mut stores, &mut pairs)?;
    trust_store(&mut stores, &mut pairs)?;
    // What is left librdkafka may know, or refuse by name.
    pairs.extend(
        stores.into_values().map(|property| (property.name.clone(), property.value.clone(), property)),
    );
    Ok(pairs)
}

fn key_store(stores: &mut Stores, pairs: &mut Vec<(String, String, Property)>) -> Result<(), ConfigError> {
    let kind = stores.remove("ssl.keystore.type");
    for (java, ours) in
        [("ssl.keystore.key", "ssl.key.pem"), ("ssl.keystore.certificate.chain", "ssl.certificate.pem")]
    {
        if let Some(property) = stores.remove(java) {
            pairs.push((ours.into(), property.value.clone(), property));
        }
    }
    let Some(location) = stores.get("ssl.keystore.location").cloned() else { return Ok(()) };
    match store_type(kind.as_ref(), &location).as_str() {
        "PKCS12" => Ok(()),
        "PEM" => {
            stores.remove("ssl.keystore.location");
            if let Some(password) = stores.get("ssl.keystore.password") {
                return Err(ConfigError::at(&password.name_place, "a PEM key store has no password")
                    .help("ssl.key.password opens the key within it"));
            }
            for ours in ["ssl.certificate.location", "ssl.key.location"] {
                pairs.push((ours.into(), location.value.clone(), location.clone()));
            }
            Ok(())
        }
        other => {
            let place = kind.as_ref().map_or(&location.value_place, |kind| &kind.value_place);
            Err(ConfigError::at(place, format!("key stores of type {other} can be read by Java only"))
                .label("not PKCS12 or PEM")
                .help(format!(
                    "convert it: keytool -importkeystore -srckeystore {} -destkeystore keys.p12 -deststoretype pkcs12",
                    location.value
                )))
        }
    }
}

fn trust_store(stores: &mut Stores, pairs: &mut Vec<(String, String, Property)>) -> Result<(), ConfigError> {
    let kind = stores.remove("ssl.truststore.type");
    if let Some(property) = stores.remove("ssl.truststore.certificates") {
        pairs.push(("ssl.ca.pem".into(), property.value.clone(), property));
    }
    let Some(location) = stores.remove("ssl.truststore.location") else { return Ok(()) };
    let found = store_type(kind.as_ref(), &location);
    if found != "PEM" {
        let place = kind.as_ref().map_or(&location.value_place, |kind| &kind.value_place);
        return Err(ConfigError::at(place, format!("trust stores of type {found} can be read by Java only"))
            .label("not PEM")
            .help(format!(
                "write the certificates as PEM: keytool -list -rfc -keystore {} > ca.pem, then ssl.ca.location",
                location.value
            )));
    }
    if let Some(password) = stores.get("ssl.truststore.password") {
        return Err(
            ConfigError::at(&password.name_place, "a PEM trust store has no password").label("remove it")
        );
    }
    pairs.push(("ssl.ca.location".into(), location.value.clone(), location));
    Ok(())
}

/// The store's type as given, or by its file's name; Java's own default is JKS.
fn store_type(kind: Option<&Property>, location: &Property) -> String {
    if let Some(kind) = kind {
        return kind.value.to_ascii_uppercase();
    }
    let extension = location.value.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match extension.as_str() {
        "p12" | "pfx" | "pkcs12" => "PKCS12".into(),
        "pem" | "crt" | "cer" | "key" => "PEM".into(),
        _ => "JKS".into(),
    }
}
