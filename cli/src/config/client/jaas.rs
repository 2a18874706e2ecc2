//! `sasl.jaas.config`: `LoginModule flag name="value" ...;` to librdkafka's properties.

use super::Property;
use crate::config::error::ConfigError;

type Pairs = Vec<(String, String)>;

pub(super) fn translate(property: &Property) -> Result<Pairs, ConfigError> {
    let bad = |why: &str| ConfigError::at(&property.value_place, format!("sasl.jaas.config: {why}"));
    let (module, options) = parse(&property.value).map_err(|why| bad(&why))?;
    let option = |name: &str| options.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    match module.rsplit('.').next().unwrap_or_default() {
        "PlainLoginModule" | "ScramLoginModule" => match (option("username"), option("password")) {
            (Some(username), Some(password)) => {
                Ok(vec![("sasl.username".into(), username), ("sasl.password".into(), password)])
            }
            _ => Err(bad("username and password are needed")),
        },
        "OAuthBearerLoginModule" => bearer(&options).map_err(|why| bad(&why)),
        other => Err(bad(&format!("the login module {other} is not in this build"))
            .help("use PlainLoginModule, ScramLoginModule or OAuthBearerLoginModule")),
    }
}

fn bearer(options: &[(String, String)]) -> Result<Pairs, String> {
    let mut pairs = Pairs::new();
    let mut extensions = Vec::new();
    for (name, value) in options {
        let target = match name.as_str() {
            "clientId" => "sasl.oauthbearer.client.id",
            "clientSecret" => "sasl.oauthbearer.client.secret",
            "scope" => "sasl.oauthbearer.scope",
            "unsecuredLoginStringClaim_sub" => {
                pairs.push(("enable.sasl.oauthbearer.unsecure.jwt".into(), "true".into()));
                pairs.push(("sasl.oauthbearer.config".into(), format!("principal={value}")));
                continue;
            }
            other => match other.strip_prefix("extension_") {
                Some(extension) => {
                    extensions.push(format!("{extension}={value}"));
                    continue;
                }
                None => return Err(format!("the option {other} cannot be honoured")),
            },
        };
        pairs.push((target.into(), value.clone()));
    }
    if !extensions.is_empty() {
        pairs.push(("sasl.oauthbearer.extensions".into(), extensions.join(",")));
    }
    Ok(pairs)
}

/// The module's class and its options.
fn parse(text: &str) -> Result<(String, Pairs), String> {
    let text = text.trim();
    let text = text.strip_suffix(';').ok_or("it must end with a ;")?;
    let (module, rest) =
        text.split_once(char::is_whitespace).ok_or("a login module and its options are expected")?;
    let rest = rest.trim_start();
    let (flag, mut rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if !["required", "requisite", "sufficient", "optional"].contains(&flag.to_ascii_lowercase().as_str()) {
        // What stands there instead may be a password.
        return Err("required is expected after the login module".into());
    }
    let mut options = Pairs::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok((module.into(), options));
        }
        let (name, after) = rest.split_once('=').ok_or("options are written name=\"value\"")?;
        let (value, after) = value(after.trim_start())?;
        options.push((name.trim().into(), value));
        rest = after;
    }
}

/// A value in quotes, with `\` before a quote or another `\`, or a bare word.
fn value(text: &str) -> Result<(String, &str), String> {
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        return Ok((text[..end].into(), &text[end..]));
    };
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            c if c == quote => return Ok((value, &text[at + 1..])),
            c => value.push(c),
        }
    }
    Err("a quoted value does not end".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_options_are_read() {
        let text = r#"org.apache.kafka.common.security.scram.ScramLoginModule required
            username="alice" password="a\"b=c; d" x='y' bare=word;"#;
        let (module, options) = parse(text).unwrap();
        assert!(module.ends_with("ScramLoginModule"));
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(
            options,
            [pair("username", "alice"), pair("password", "a\"b=c; d"), pair("x", "y"), pair("bare", "word")]
        );
    }

    #[test]
    fn malformed_texts_say_what_is_wrong() {
        for (text, why) in [
            ("M required a=b", "it must end with a ;"),
            ("M a=b;", "required is expected after the login module"),
            ("M required a=\"b;", "a quoted value does not end"),
            ("M required a;", "options are written name=\"value\""),
        ] {
            assert_eq!(parse(text).unwrap_err(), why, "{text}");
        }
    }
}
