//! What may be done in a channel, by its namespace and by who asks. A value, made once from the
//! settings.

use std::collections::HashMap;
use std::sync::Arc;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use regex::Regex;

use crate::channels::KEYS_KEPT_MS;
use crate::name::{self, NAME_BYTES_MAX};
use crate::settings::{ChannelSettings, DeltaType, Namespace, RecoveryMode, SettingsError, Span};
use crate::stream::Keep;

/// All namespaces.
#[derive(Debug)]
pub(crate) struct Rules {
    without_namespace: Arc<Rule>,
    namespaces: HashMap<String, Arc<Rule>>,
    pub(crate) history_limit: usize,
    pub(crate) recovery_limit: usize,
}

/// One namespace.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    options: Namespace,
    pattern: Option<Regex>,
    keep: Option<Keep>,
}

/// What a client wants to do, beside subscribing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Publish,
    History,
    Presence,
}

/// Who wants to do it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker<'a> {
    /// Empty: anonymous.
    pub(crate) user: &'a str,
    pub(crate) is_subscribed: bool,
}

impl Rules {
    pub(crate) fn new(settings: &ChannelSettings) -> Result<Self, SettingsError> {
        let meta_ttl = settings.history_meta_ttl;
        let mut namespaces = HashMap::new();
        for namespace in &settings.namespaces {
            if !name::is_namespace(&namespace.name) {
                let text = format!(
                    "namespace `{}`: a name is not empty, does not begin with `$` and has no `:` \
                     or `#`",
                    namespace.name
                );
                return Err(SettingsError::Invalid(text));
            }
            let rule = Rule::new(namespace.options()?, meta_ttl, &namespace.name)?;
            if namespaces.insert(namespace.name.clone(), Arc::new(rule)).is_some() {
                let text = format!("namespace `{}` is there twice", namespace.name);
                return Err(SettingsError::Invalid(text));
            }
        }
        let endpoints = &settings.proxy;
        let without = settings.without_namespace.clone();
        let without = Arc::new(Rule::new(without, meta_ttl, "without_namespace")?);
        for rule in namespaces.values().chain([&without]) {
            let options = &rule.options;
            for (is_enabled, name, proxy) in [
                (options.subscribe_proxy_enabled, "subscribe", &endpoints.subscribe),
                (options.publish_proxy_enabled, "publish", &endpoints.publish),
                (options.sub_refresh_proxy_enabled, "sub_refresh", &endpoints.sub_refresh),
            ] {
                if is_enabled && proxy.endpoint.is_empty() {
                    let text = format!("{name}_proxy_enabled needs channel.proxy.{name}.endpoint");
                    return Err(SettingsError::Invalid(text));
                }
            }
        }
        let is_durable = |rule: &Arc<Rule>| rule.options.durable_history;
        let some_are = namespaces.values().any(is_durable) || is_durable(&without);
        if some_are && settings.history_directory.is_none() {
            let text = "durable_history needs channel.history_directory".to_owned();
            return Err(SettingsError::Invalid(text));
        }
        Ok(Self {
            without_namespace: without,
            namespaces,
            history_limit: settings.history_max_publication_limit,
            recovery_limit: settings.recovery_max_publication_limit,
        })
    }

    /// The namespace with a durable history, if one has it; `without_namespace` is called so.
    pub(crate) fn durable(&self) -> Option<&str> {
        let is_durable = |rule: &Rule| rule.options.durable_history;
        if is_durable(&self.without_namespace) {
            return Some("without_namespace");
        }
        let mut namespaces = self.namespaces.iter();
        namespaces.find(|(_, rule)| is_durable(rule)).map(|(name, _)| name.as_str())
    }

    /// Whether there is such a namespace; the empty name is for channels without one.
    pub(crate) fn has(&self, namespace: &str) -> bool {
        namespace.is_empty() || self.namespaces.contains_key(namespace)
    }

    /// The rule of a channel.
    pub(crate) fn of(&self, channel: &str) -> Result<&Arc<Rule>, RpcError> {
        if channel.is_empty() {
            return Err(RpcError::new(ErrorCode::BadRequest, "channel is empty"));
        }
        if channel.len() > NAME_BYTES_MAX {
            let text = format!("channel is over the limit of {NAME_BYTES_MAX} bytes");
            return Err(RpcError::new(ErrorCode::BadRequest, text));
        }
        match name::namespace(channel) {
            None => Ok(&self.without_namespace),
            Some(namespace) => self.namespaces.get(namespace).ok_or_else(|| {
                RpcError::new(ErrorCode::UnknownChannel, format!("no namespace `{namespace}`"))
            }),
        }
    }
}

impl Rule {
    fn new(options: Namespace, meta_ttl: Span, name: &str) -> Result<Self, SettingsError> {
        let pattern = match options.channel_regex.as_str() {
            "" => None,
            pattern => Some(Regex::new(pattern).map_err(|error| {
                SettingsError::Invalid(format!("{name}: channel_regex: {error}"))
            })?),
        };
        let has_history = options.history_size > 0 && options.history_ttl.as_millis() > 0;
        let wants_history = options.force_recovery || options.force_positioning;
        if wants_history && !has_history {
            let text = format!("{name}: force_recovery needs history_size and history_ttl");
            return Err(SettingsError::Invalid(text));
        }
        if options.durable_history && !has_history {
            let text = format!("{name}: durable_history needs history_size and history_ttl");
            return Err(SettingsError::Invalid(text));
        }
        let numbers_ttl_ms = options.history_meta_ttl.unwrap_or(meta_ttl).as_millis();
        let keep = has_history.then(|| Keep {
            len_max: options.history_size,
            ttl_ms: options.history_ttl.as_millis(),
            numbers_ttl_ms: match options.durable_history {
                // Keys of a channel are on disk for as long as its numbers.
                true => numbers_ttl_ms.max(KEYS_KEPT_MS),
                false => numbers_ttl_ms,
            },
            is_durable: options.durable_history,
        });
        Ok(Self { options, pattern, keep })
    }

    /// One that differs in some of its options, which say nothing of its history.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Namespace)) -> Self {
        let mut rule = self.clone();
        change(&mut rule.options);
        rule
    }

    /// How much of a channel is kept; `None`: nothing.
    pub(crate) fn keep(&self) -> Option<Keep> {
        self.keep
    }

    pub(crate) fn has_presence(&self) -> bool {
        self.options.presence
    }

    /// Whether who comes and goes is told at all.
    pub(crate) fn tells_comings(&self) -> bool {
        self.options.join_leave
    }

    /// Whether a subscriber is told who comes and goes.
    pub(crate) fn wants_comings(&self, is_asked: bool) -> bool {
        self.options.join_leave && (is_asked || self.options.force_push_join_leave)
    }

    pub(crate) fn is_positioned(&self, is_asked: bool) -> bool {
        let options = &self.options;
        self.keep.is_some() && (options.force_positioning || options.allow_positioning && is_asked)
    }

    pub(crate) fn is_recoverable(&self, is_asked: bool) -> bool {
        let options = &self.options;
        self.keep.is_some() && (options.force_recovery || options.allow_recovery && is_asked)
    }

    /// Whether a subscriber that asks for deltas of this kind gets them.
    pub(crate) fn gives_deltas(&self, kind: &str, has_position: bool) -> bool {
        let is_allowed = self.options.allowed_delta_types.contains(&DeltaType::Fossil);
        kind == "fossil" && is_allowed && has_position
    }

    /// Whether subscribers may filter by tags.
    pub(crate) fn takes_filters(&self) -> bool {
        self.options.allow_tags_filter
    }

    /// Whether all publications may go out as deltas.
    pub(crate) fn publishes_deltas(&self) -> bool {
        self.options.delta_publish
    }

    /// Whether a backend decides who subscribes to a channel.
    pub(crate) fn asks_to_subscribe(&self, channel: &str) -> bool {
        let is_decided = name::is_private(channel) || name::users(channel).is_some();
        self.options.subscribe_proxy_enabled && !is_decided
    }

    /// Whether a backend decides who publishes.
    pub(crate) fn asks_to_publish(&self) -> bool {
        self.options.publish_proxy_enabled
    }

    /// Whether a backend decides what becomes of subscriptions that expire.
    pub(crate) fn asks_to_renew(&self) -> bool {
        self.options.sub_refresh_proxy_enabled
    }

    pub(crate) fn recovers_newest(&self) -> bool {
        self.options.force_recovery_mode == RecoveryMode::Cache
    }

    /// Whether a client without a token may subscribe.
    pub(crate) fn may_subscribe(&self, channel: &str, user: &str) -> Result<(), RpcError> {
        let denied = |text: &str| Err(RpcError::new(ErrorCode::PermissionDenied, text));
        self.fits(channel)?;
        if name::is_private(channel) {
            return denied("this channel needs a subscription token");
        }
        if let Some(mut users) = name::users(channel) {
            return match self.options.allow_user_limited_channels {
                true if !user.is_empty() && users.any(|one| one == user) => Ok(()),
                _ => denied("this channel is for other users"),
            };
        }
        let options = &self.options;
        let is_allowed = match user {
            "" => options.allow_subscribe_for_anonymous,
            _ => options.allow_subscribe_for_client,
        };
        if is_allowed { Ok(()) } else { denied("this channel needs a subscription token") }
    }

    /// Whether the name has the form that the namespace wants.
    pub(crate) fn fits(&self, channel: &str) -> Result<(), RpcError> {
        let Some(pattern) = &self.pattern else { return Ok(()) };
        let rest = channel.split_once(':').map_or(channel, |(_, rest)| rest);
        match pattern.is_match(rest) {
            true => Ok(()),
            false => Err(RpcError::new(ErrorCode::BadRequest, "channel does not match its regex")),
        }
    }

    /// Whether somebody may do something in a channel, and the channel offers it.
    pub(crate) fn may(&self, action: Action, asker: Asker<'_>) -> Result<(), RpcError> {
        let is_offered = match action {
            Action::Publish => true,
            Action::History => self.keep.is_some(),
            Action::Presence => self.options.presence,
        };
        if !is_offered {
            return Err(ErrorCode::NotAvailable.into());
        }
        let options = &self.options;
        let (for_subscriber, for_client, for_anonymous) = match action {
            Action::Publish => (
                options.allow_publish_for_subscriber,
                options.allow_publish_for_client,
                options.allow_publish_for_anonymous,
            ),
            Action::History => (
                options.allow_history_for_subscriber,
                options.allow_history_for_client,
                options.allow_history_for_anonymous,
            ),
            Action::Presence => (
                options.allow_presence_for_subscriber,
                options.allow_presence_for_client,
                options.allow_presence_for_anonymous,
            ),
        };
        let by_user = if asker.user.is_empty() { for_anonymous } else { for_client };
        match by_user || for_subscriber && asker.is_subscribed {
            true => Ok(()),
            false => Err(ErrorCode::PermissionDenied.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn rules(text: &str) -> Result<Rules, SettingsError> {
        Rules::new(&Settings::from_toml(text).unwrap().channel)
    }

    #[test]
    fn who_may_subscribe_follows_from_the_name_and_its_namespace() {
        let rules = rules(
            "[channel.without_namespace]
            allow_user_limited_channels = true
            [[channel.namespaces]]
            name = 'chat'
            allow_subscribe_for_client = true
            channel_regex = '^[a-z]+$'",
        )
        .unwrap();
        let may = |channel: &str, user: &str| {
            rules.of(channel).and_then(|rule| rule.may_subscribe(channel, user)).map_err(|e| e.code)
        };
        assert_eq!(may("chat:index", "42"), Ok(()));
        assert_eq!(may("chat:index", ""), Err(ErrorCode::PermissionDenied));
        assert_eq!(may("chat:INDEX", "42"), Err(ErrorCode::BadRequest));
        assert_eq!(may("$chat:index", "42"), Err(ErrorCode::PermissionDenied));
        assert_eq!(may("dialog#41,42", "42"), Ok(()));
        assert_eq!(may("dialog#41,42", "43"), Err(ErrorCode::PermissionDenied));
        assert_eq!(may("dialog#", ""), Err(ErrorCode::PermissionDenied));
        assert_eq!(may("index", "42"), Err(ErrorCode::PermissionDenied));
        assert_eq!(may("other:index", "42"), Err(ErrorCode::UnknownChannel));
        assert_eq!(may(&"x".repeat(256), "42"), Err(ErrorCode::BadRequest));
    }

    #[test]
    fn numbers_of_a_durable_channel_stay_for_as_long_as_its_keys() {
        let short = "history_size = 1\nhistory_ttl = '1s'\nhistory_meta_ttl = '1s'";
        for (durable, wanted) in [("false", 1_000), ("true", KEYS_KEPT_MS)] {
            let rules = rules(&format!(
                "[channel]\nhistory_directory = '/d'\n[channel.without_namespace]\n{short}\n\
                 durable_history = {durable}"
            ));
            let keep = rules.unwrap().of("x").unwrap().keep().unwrap();
            assert_eq!((keep.ttl_ms, keep.numbers_ttl_ms), (1_000, wanted));
        }
    }

    #[test]
    fn settings_that_contradict_themselves_are_refused_by_name() {
        for (text, word) in [
            ("[channel.without_namespace]\nforce_recovery = true", "history_size"),
            ("[channel.without_namespace]\ndurable_history = true", "history_size"),
            (
                "[channel.without_namespace]\ndurable_history = true\nhistory_size = 1\n\
                 history_ttl = '1s'",
                "history_directory",
            ),
            ("[channel.without_namespace]\nchannel_regex = '('", "channel_regex"),
            ("[[channel.namespaces]]\nname = 'a'\n[[channel.namespaces]]\nname = 'a'", "twice"),
            // Channels of these would pass for others, or would never be found.
            ("[[channel.namespaces]]\nname = ''", "namespace ``"),
            ("[[channel.namespaces]]\nname = '$a'", "namespace `$a`"),
            ("[[channel.namespaces]]\nname = 'a:b'", "namespace `a:b`"),
            ("[[channel.namespaces]]\nname = 'a#b'", "namespace `a#b`"),
        ] {
            let error = rules(text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
