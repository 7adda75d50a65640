//! What settings may be: one with which nobody could connect, or that would keep a core busy for
//! nothing, is refused by its name when the relay starts, not met later.

use std::collections::HashSet;
use std::time::Duration;

use super::{ConsumerKind, Settings, SettingsError, Span};

/// Below it there are only pings and looks at tables, one after the other.
const SPAN_MIN: Duration = Duration::from_millis(1);
/// More than anybody means, and less than a clock cannot add.
const SPAN_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// A reply or two; who is sent more at once would be taken for slow.
const QUEUE_BYTES_MIN: usize = 1 << 10;
/// A connection's queue larger than that is no queue.
const QUEUE_BYTES_MAX: usize = 1 << 30;

impl Settings {
    /// Checks all that a type cannot say.
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        let client = &self.client;
        for (name, span) in [
            ("client.ping_interval", client.ping_interval),
            ("client.pong_timeout", client.pong_timeout),
            ("client.stale_close_delay", client.stale_close_delay),
        ] {
            within(name, span)?;
        }
        let queue = client.queue_max_size;
        if !(QUEUE_BYTES_MIN..=QUEUE_BYTES_MAX).contains(&queue) {
            let text = format!(
                "client.queue_max_size must be from {QUEUE_BYTES_MIN} to {QUEUE_BYTES_MAX} bytes, \
                 not {queue}"
            );
            return Err(SettingsError::Invalid(text));
        }
        let mut names = HashSet::new();
        for consumer in &self.consumers {
            // By its name, what was published of it is known again.
            if consumer.enabled && !names.insert(&consumer.name) {
                let text = format!("consumer `{}` is there twice", consumer.name);
                return Err(SettingsError::Invalid(text));
            }
            if matches!(consumer.kind, ConsumerKind::Postgresql) {
                let name = format!("consumer `{}`: partition_poll_interval", consumer.name);
                within(&name, consumer.postgresql.partition_poll_interval)?;
            }
        }
        Ok(())
    }
}

fn within(name: &str, span: Span) -> Result<(), SettingsError> {
    if (SPAN_MIN..=SPAN_MAX).contains(&span.0) {
        return Ok(());
    }
    let days = SPAN_MAX.as_secs() / (24 * 60 * 60);
    let text = format!("{name} must be from 1ms to {days}d, not {} ms", span.as_millis());
    Err(SettingsError::Invalid(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_with_which_nothing_works_is_refused_by_its_name() {
        let consumer =
            "[[consumers]]\nname = 'rows'\ntype = 'postgresql'\n[consumers.postgresql]\n";
        for (name, value) in [
            ("queue_max_size", "0"),
            ("queue_max_size", "1023"),
            ("queue_max_size", "1073741825"),
            ("ping_interval", "'0s'"),
            ("ping_interval", "'366d'"),
            ("pong_timeout", "''"),
            ("stale_close_delay", "'0ms'"),
            ("partition_poll_interval", "'0s'"),
        ] {
            let section = if name.starts_with("partition") { consumer } else { "[client]\n" };
            let settings = Settings::from_toml(&format!("{section}{name} = {value}")).unwrap();
            let error = settings.check().unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("must be"), "{error}");
        }
        let two = |name: &str, more: &str| {
            let consumer = "type = 'postgresql'\n[[consumers]]\ntype = 'postgresql'";
            let text = format!("[[consumers]]\nname = 'rows'\n{consumer}\nname = '{name}'\n{more}");
            Settings::from_toml(&text).unwrap().check().map_err(|error| error.to_string())
        };
        let twice = two("rows", "").unwrap_err();
        assert!(twice.contains("consumer `rows` is there twice"), "{twice}");
        assert_eq!(two("rows", "enabled = false"), Ok(()));
        assert_eq!(two("others", ""), Ok(()));
        Settings::default().check().unwrap();
        Settings::from_toml("[client]\nqueue_max_size = 1024").unwrap().check().unwrap();
    }
}
