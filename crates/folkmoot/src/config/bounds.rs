//! What settings may be: one with which nobody could connect, or of which no clock can count to the
//! end, is refused by its name when the server starts, not met later.

use std::time::Duration;

use super::{Config, ConfigError};

/// More than anybody means, and less than a clock cannot add.
const SPAN_MAX_S: u64 = 365 * 24 * 60 * 60;
/// Less than one event of the largest size, and whoever gets two at once is taken for slow.
const QUEUE_BYTES_MIN: usize = 64 * 1024;
/// A connection's queue larger than that is no queue.
const QUEUE_BYTES_MAX: usize = 1 << 30;

/// Checks all that a type cannot say.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    spans(config)?;
    counts(config)?;
    texts(config)
}

fn spans(config: &Config) -> Result<(), ConfigError> {
    let gateway = &config.gateway;
    for (name, span) in [
        ("gateway.ping_s", gateway.ping),
        ("gateway.pong_timeout_s", gateway.pong_timeout),
        ("gateway.connect_timeout_s", gateway.connect_timeout),
        ("gateway.header_timeout_s", gateway.header_timeout),
    ] {
        let (min, max) = (Duration::from_secs(1), Duration::from_secs(SPAN_MAX_S));
        if !(min..=max).contains(&span) {
            let seconds = span.as_secs();
            let text = format!("must be from 1 to {SPAN_MAX_S} seconds, not {seconds}");
            return Err(wrong(name, text));
        }
    }
    Ok(())
}

fn counts(config: &Config) -> Result<(), ConfigError> {
    let gateway = &config.gateway;
    for (name, count) in [
        ("gateway.connections_max", gateway.connections_max.unwrap_or(1)),
        ("gateway.connections_per_address_max", gateway.connections_per_address_max),
        ("gateway.connections_per_user_max", gateway.connections_per_user_max),
    ] {
        if count == 0 {
            return Err(wrong(name, "must be at least 1: nobody could connect"));
        }
    }
    let queue = gateway.outgoing_queue_bytes_max;
    if !(QUEUE_BYTES_MIN..=QUEUE_BYTES_MAX).contains(&queue) {
        let text = format!("must be from {QUEUE_BYTES_MIN} to {QUEUE_BYTES_MAX}, not {queue}");
        return Err(wrong("gateway.outgoing_queue_bytes_max", text));
    }
    if config.limits.allows_no_message() {
        let text = "must be at least 1: nobody could send; messages_per_second = 0 is no limit";
        return Err(wrong("limits.message_burst", text));
    }
    Ok(())
}

fn texts(config: &Config) -> Result<(), ConfigError> {
    let is_site = |text: &str| {
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        // Paths are put behind it.
        let ends = |char: char| char.is_whitespace() || "?#".contains(char);
        host.is_some_and(|host| !host.is_empty() && !host.contains(ends))
    };
    if let Some(url) = config.public_url.as_ref().filter(|url| !is_site(url)) {
        let text = format!("must begin with https:// or http://, without ? and #, not be {url:?}");
        return Err(wrong("public_url", text));
    }
    let is_origin = |text: &str| text == "*" || is_site(text) && text.matches('/').count() == 2;
    if let Some(origin) = config.allow_origin.iter().find(|origin| !is_origin(origin)) {
        let text = format!("must be like https://chat.example.org, without a path, not {origin:?}");
        return Err(wrong("allow_origin", text));
    }
    if config.metrics_token.as_ref().is_some_and(String::is_empty) {
        return Err(wrong("metrics_token", "is empty; leave it out, and it opens nothing"));
    }
    let types = &config.attachments.types;
    let is_type = |text: &str| text == "*" || text.contains('/');
    if let Some(wrong_one) = types.iter().find(|text| !is_type(text)) {
        let text = format!("must be media types such as image/png or audio/*, not {wrong_one:?}");
        return Err(wrong("attachments.types", text));
    }
    Ok(())
}

fn wrong(name: &'static str, text: impl Into<String>) -> ConfigError {
    ConfigError::Setting { name, text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::super::{File, Flags};
    use super::*;

    fn refused(text: &str) -> Option<String> {
        let file: File = toml::from_str(text).expect("the types are right");
        check(&Config::merge(Flags::default(), file)).err().map(|error| error.to_string())
    }

    #[test]
    fn a_value_that_no_server_can_work_with_is_refused_by_its_name() {
        for (section, setting) in [
            ("gateway", "ping_s = 0"),
            ("gateway", "ping_s = 9223372036854775807"),
            ("gateway", "pong_timeout_s = 0"),
            ("gateway", "pong_timeout_s = 9223372036854775807"),
            ("gateway", "connect_timeout_s = 0"),
            ("gateway", "connect_timeout_s = 9223372036854775807"),
            ("gateway", "header_timeout_s = 0"),
            ("gateway", "header_timeout_s = 9223372036854775807"),
            ("gateway", "connections_max = 0"),
            ("gateway", "connections_per_address_max = 0"),
            ("gateway", "connections_per_user_max = 0"),
            ("gateway", "outgoing_queue_bytes_max = 0"),
            ("gateway", "outgoing_queue_bytes_max = 9223372036854775807"),
            ("limits", "message_burst = 0"),
            ("attachments", "types = ['png']"),
        ] {
            let name = format!("{section}.{}", setting.split(' ').next().unwrap_or_default());
            let error = refused(&format!("[{section}]\n{setting}")).expect(&name);
            assert!(error.starts_with(&format!("`{name}` ")), "{error}");
        }
        for setting in [
            "public_url = 'chat.example.org'",
            "public_url = 'javascript:alert(1)'",
            "public_url = 'https://chat.example.org/#'",
            "allow_origin = ['chat.example.org']",
            "allow_origin = ['https://chat.example.org/path']",
            "metrics_token = ''",
        ] {
            let name = setting.split(' ').next().unwrap_or_default();
            assert!(refused(setting).expect(name).starts_with(&format!("`{name}` ")));
        }
    }

    #[test]
    fn what_is_documented_passes() {
        for text in [
            "",
            "public_url = 'https://chat.example.org'\nallow_origin = ['*', 'http://[::1]:8000']",
            "[limits]\nmessages_per_second = 0\nmessage_burst = 0",
            "[attachments]\ntypes = ['*']\nfiles_per_message_max = 0",
            "[gateway]\noutgoing_queue_bytes_max = 65536\nconnections_max = 1",
        ] {
            assert_eq!(refused(text), None, "{text}");
        }
    }
}
