//! Asks a backend about what clients do: whether they may connect, subscribe and publish, whether
//! what expires goes on, and what their calls return. Requests and answers are Centrifugo's.
//!
//! A backend that hangs holds up whoever waits for it, until the time limit: each endpoint has its
//! own bounded number of requests under way.

pub(crate) mod http;
mod message;
mod trust;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::session::Refusal;
use crate::settings::{ProxySettings, Settings, SettingsError};
use http::{Endpoint, HttpError, Repeat};
use message::Answer;
pub(crate) use message::{
    About, ConnectRequest, Connected, Refreshed, ReplyData, RpcRequest, Subscribed, WithChannel,
    payload,
};
pub(crate) use trust::Trust;

/// What a backend is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    Connect,
    Refresh,
    Subscribe,
    Publish,
    SubRefresh,
    Rpc,
}

impl Event {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Refresh => "refresh",
            Self::Subscribe => "subscribe",
            Self::Publish => "publish",
            Self::SubRefresh => "sub_refresh",
            Self::Rpc => "rpc",
        }
    }

    /// What a backend does for a publication or a call is not to be done twice.
    fn repeat(self) -> Repeat {
        match self {
            Self::Connect | Self::Refresh | Self::Subscribe | Self::SubRefresh => Repeat::Always,
            Self::Publish | Self::Rpc => Repeat::IfUnsent,
        }
    }
}

/// The endpoints of the backends.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    by_event: BTreeMap<Event, Proxy>,
    /// Headers that some of them want, in lower case.
    wanted_headers: BTreeSet<String>,
}

#[derive(Debug)]
struct Proxy {
    endpoint: Endpoint,
    http_headers: Vec<HeaderName>,
    emulated_headers: Vec<HeaderName>,
    includes_meta: bool,
    failed: AtomicU64,
}

/// How a client came, as far as backends want to know.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    pub(crate) transport: &'static str,
    /// Of the request that opened the connection.
    pub(crate) http_headers: HeaderMap,
    /// Those that the client says in the connect command, where it cannot set others.
    pub(crate) emulated_headers: BTreeMap<String, String>,
}

impl Proxies {
    pub(crate) fn new(settings: &Settings, trust: &Trust) -> Result<Self, SettingsError> {
        let mut proxies = Self::default();
        let (client, channel) = (&settings.client.proxy, &settings.channel.proxy);
        for (event, proxy, is_enabled) in [
            (Event::Connect, &client.connect, client.connect.enabled),
            (Event::Refresh, &client.refresh, client.refresh.enabled),
            (Event::Subscribe, &channel.subscribe, !channel.subscribe.endpoint.is_empty()),
            (Event::Publish, &channel.publish, !channel.publish.endpoint.is_empty()),
            (Event::SubRefresh, &channel.sub_refresh, !channel.sub_refresh.endpoint.is_empty()),
            (Event::Rpc, &settings.rpc.proxy, !settings.rpc.proxy.endpoint.is_empty()),
        ] {
            if is_enabled {
                let made = Proxy::new(proxy, trust).map_err(|error| {
                    SettingsError::Invalid(format!("proxy of {}: {error}", event.name()))
                })?;
                let named = proxy.http_headers.iter().chain(&proxy.emulated_headers);
                proxies.wanted_headers.extend(named.map(|name| name.to_lowercase()));
                proxies.by_event.insert(event, made);
            }
        }
        Ok(proxies)
    }

    pub(crate) fn has(&self, event: Event) -> bool {
        self.by_event.contains_key(&event)
    }

    /// Whether the backend is told what it said of the connection for itself.
    pub(crate) fn includes_meta(&self, event: Event) -> bool {
        self.by_event.get(&event).is_some_and(|proxy| proxy.includes_meta)
    }

    /// What is kept of a client's headers: those that some backend wants.
    pub(crate) fn origin(&self, transport: &'static str, headers: &HeaderMap) -> Origin {
        let wanted = headers.iter().filter(|(name, _)| self.wanted_headers.contains(name.as_str()));
        let http_headers = wanted.map(|(name, value)| (name.clone(), value.clone())).collect();
        Origin { transport, http_headers, emulated_headers: BTreeMap::new() }
    }

    /// Takes over those that the client says in the connect command.
    pub(crate) fn add_emulated(&self, origin: &mut Origin, headers: BTreeMap<String, String>) {
        let headers = headers.into_iter().map(|(name, value)| (name.to_lowercase(), value));
        origin.emulated_headers =
            headers.filter(|(it, _)| self.wanted_headers.contains(it)).collect();
    }

    /// How often each backend did not answer.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.by_event.iter().map(|(event, it)| (event.name(), it.failed.load(Ordering::Relaxed)))
    }

    /// Asks the backend; an answer that is an error or a disconnect is a refusal.
    pub(crate) async fn ask<T: DeserializeOwned + Default>(
        &self,
        event: Event,
        origin: &Origin,
        request: &impl Serialize,
    ) -> Result<T, Refusal> {
        let Some(proxy) = self.by_event.get(&event) else {
            return Err(ErrorCode::NotAvailable.into());
        };
        let answer = proxy.post(origin, request, event.repeat()).await.map_err(|error| {
            proxy.failed.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%error, event = event.name(), "a proxy has no answer");
            RpcError::from(ErrorCode::Internal)
        })?;
        serde_json::from_slice::<Answer<T>>(&answer).map_or_else(
            |error| {
                proxy.failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%error, event = event.name(), "a proxy's answer cannot be read");
                Err(ErrorCode::Internal.into())
            },
            Answer::outcome,
        )
    }
}

impl Proxy {
    fn new(settings: &ProxySettings, trust: &Trust) -> Result<Self, String> {
        let static_headers = &settings.http.static_headers;
        let timeout = settings.timeout.0;
        let endpoint = Endpoint::new(&settings.endpoint, timeout, static_headers, trust)?;
        let names = |names: &[String]| -> Result<Vec<HeaderName>, String> {
            let names = names.iter().map(|name| name.parse::<HeaderName>());
            names.collect::<Result<_, _>>().map_err(|error| error.to_string())
        };
        let (http_headers, emulated_headers) =
            (names(&settings.http_headers)?, names(&settings.emulated_headers)?);
        let (includes_meta, failed) = (settings.include_connection_meta, AtomicU64::new(0));
        Ok(Self { endpoint, http_headers, emulated_headers, includes_meta, failed })
    }

    async fn post(
        &self,
        origin: &Origin,
        request: &impl Serialize,
        repeat: Repeat,
    ) -> Result<Bytes, HttpError> {
        let mut headers = HeaderMap::new();
        for name in &self.emulated_headers {
            let value = origin.emulated_headers.get(name.as_str());
            if let Some(Ok(value)) = value.map(|value| HeaderValue::from_str(value)) {
                headers.insert(name.clone(), value);
            }
        }
        // What the request itself carries counts: others on the way may have set it.
        for name in &self.http_headers {
            if let Some(value) = origin.http_headers.get(name) {
                headers.insert(name.clone(), value.clone());
            }
        }
        let body = serde_json::to_vec(request).expect("requests of ours are JSON");
        self.endpoint.post(&headers, body.into(), repeat).await
    }
}
