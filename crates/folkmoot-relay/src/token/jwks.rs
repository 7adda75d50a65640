//! Keys of an identity provider, fetched from its endpoint and kept.
//!
//! The endpoint is asked when the keys are old or a token names one that is not known, but only so
//! often: strangers choose what their tokens name. Who names such a key in between may come again:
//! the provider may have it by now. While it does not answer, known keys go on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;

use super::{ECDSA, EDDSA, Key, RSA};
use crate::proxy::http::{Endpoint, HttpError};

/// How long keys count as new.
const FRESH_FOR: Duration = Duration::from_secs(60 * 60);
/// Between two questions to the endpoint.
const ASK_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct Jwks {
    endpoint: Endpoint,
    fresh_for: Duration,
    ask_pause: Duration,
    state: Mutex<State>,
    /// Held by whoever asks, so that all others wait for one answer.
    asking: tokio::sync::Mutex<()>,
}

/// Keys by their names. Those of several kinds may have one.
type ById = HashMap<String, Vec<Arc<Key>>>;

#[derive(Default)]
struct State {
    by_id: ById,
    fetched_at: Option<Instant>,
    asked_at: Option<Instant>,
}

/// Why there is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoKey {
    /// The provider has none of this name.
    Unknown,
    /// It did not answer, or is not asked yet, so nobody knows.
    Unclear,
}

impl Jwks {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            fresh_for: FRESH_FOR,
            ask_pause: ASK_PAUSE,
            state: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// The keys of this name: one or more.
    pub(super) async fn keys(&self, id: &str) -> Result<Vec<Arc<Key>>, NoKey> {
        if let Some(keys) = self.fresh(id) {
            return Ok(keys);
        }
        let _asking = self.asking.lock().await;
        // Somebody may have asked meanwhile.
        if let Some(keys) = self.fresh(id) {
            return Ok(keys);
        }
        let asked_at = self.state.lock().asked_at;
        let may_ask = asked_at.is_none_or(|at| at.elapsed() >= self.ask_pause);
        let is_answered = may_ask && self.ask().await;
        match self.state.lock().by_id.get(id) {
            Some(keys) => Ok(keys.clone()),
            None if is_answered => Err(NoKey::Unknown),
            None => Err(NoKey::Unclear),
        }
    }

    /// The keys of this name, unless they are old.
    fn fresh(&self, id: &str) -> Option<Vec<Arc<Key>>> {
        let state = self.state.lock();
        let is_fresh = state.fetched_at.is_some_and(|at| at.elapsed() < self.fresh_for);
        state.by_id.get(id).filter(|_| is_fresh).cloned()
    }

    /// Returns whether there was an answer.
    async fn ask(&self) -> bool {
        let fetched = self.fetch().await;
        let now = Some(Instant::now());
        let mut state = self.state.lock();
        state.asked_at = now;
        match fetched {
            Ok(by_id) => {
                (state.by_id, state.fetched_at) = (by_id, now);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "keys for tokens cannot be fetched");
                false
            }
        }
    }

    async fn fetch(&self) -> Result<ById, FetchError> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<serde_json::Value>,
        }
        let set: Set = serde_json::from_slice(&self.endpoint.get().await?)?;
        // One that is not understood leaves the others as they are.
        let keys = set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
        let mut by_id = ById::new();
        for (id, key) in keys.filter_map(|key| usable(&key)) {
            by_id.entry(id).or_default().push(key);
        }
        Ok(by_id)
    }
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("{0}")]
    Http(#[from] HttpError),
    #[error("the answer is no set of keys: {0}")]
    Json(#[from] serde_json::Error),
}

/// A key for signatures by its name. A secret is none: everybody can read it.
fn usable(key: &Jwk) -> Option<(String, Arc<Key>)> {
    let is_for_signatures =
        key.common.public_key_use.as_ref().is_none_or(|it| *it == PublicKeyUse::Signature);
    let of_its_kind = match key.algorithm {
        AlgorithmParameters::RSA(_) => RSA,
        AlgorithmParameters::EllipticCurve(_) => ECDSA,
        AlgorithmParameters::OctetKeyPair(_) => EDDSA,
        AlgorithmParameters::OctetKey(_) => return None,
    };
    let algorithms = match key.common.key_algorithm {
        None => of_its_kind,
        Some(only) => {
            let only: Algorithm = only.to_string().parse().ok()?;
            let place = of_its_kind.iter().position(|one| *one == only)?;
            &of_its_kind[place..=place]
        }
    };
    let id = key.common.key_id.clone().filter(|_| is_for_signatures)?;
    let decoding = DecodingKey::from_jwk(key).ok()?;
    Some((id, Arc::new((algorithms, decoding))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::get;
    use axum::{Json, Router};
    use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
    use serde_json::{Value, json};
    use tokio::net::TcpListener;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::proxy::Trust;
    use crate::settings::TokenSettings;
    use crate::token::{TokenError, Verifier};

    /// Two keys made for this test: what signs, and what checks it.
    const KEYS: [(&str, &str); 2] = [
        (
            "-----BEGIN PRIVATE KEY-----\n\
             MC4CAQAwBQYDK2VwBCIEIIJD3FxtYnT4FL9kHikIhpT1mTP/tejfiDArFNKel1ly\n\
             -----END PRIVATE KEY-----",
            "44Oi9UZ4uUYBAhZ1W_PZYHka_pI1OQ-V5QNQPlyNG7M",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\n\
             MC4CAQAwBQYDK2VwBCIEIOKhcl346MiAtydnVbWG+aXe9M7rWQGsKhH5Hzo+2bKd\n\
             -----END PRIVATE KEY-----",
            "7hfJJGl2yjFv_EqPXkBYvIjOwW5zCzj1i8YNLi6dzDk",
        ),
    ];

    /// The same of the curve P-256.
    const OF_CURVE: (&str, [&str; 2]) = (
        "-----BEGIN PRIVATE KEY-----\n\
         MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgGVM2jfgv6km5S9Ts\n\
         yV3uwbG6QcASva3p1x3nqCkoJ4ahRANCAAQZRm/SMpuU5wK6RE8HeTbLGBQ6OP3Q\n\
         yQsbK9ddbLf3tP4a7XLXauByW0bivrnTQoAZxVAMIt8YhZ233OcM/1b9\n\
         -----END PRIVATE KEY-----",
        [
            "GUZv0jKblOcCukRPB3k2yxgUOjj90MkLGyvXXWy397Q",
            "_hrtctdq4HJbRuK-udNCgBnFUAwi3xiFnbfc5wz_Vv0",
        ],
    );

    /// A key of that curve, and a token of it.
    fn of_curve(id: &str) -> (Value, String) {
        let (secret, [x, y]) = OF_CURVE;
        let header = Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::ES256) };
        let key = EncodingKey::from_ec_pem(secret.as_bytes()).unwrap();
        let token = encode(&header, &json!({ "sub": "42" }), &key).unwrap();
        (json!({ "kid": id, "kty": "EC", "crv": "P-256", "x": x, "y": y }), token)
    }

    fn key(id: &str, number: usize) -> Value {
        json!({ "kid": id, "kty": "OKP", "crv": "Ed25519", "use": "sig", "x": KEYS[number].1 })
    }

    fn token(id: &str, number: usize) -> String {
        let header = Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::EdDSA) };
        let key = EncodingKey::from_ed_pem(KEYS[number].0.as_bytes()).unwrap();
        encode(&header, &json!({ "sub": "42" }), &key).unwrap()
    }

    /// A provider of keys that counts how often it is asked.
    struct Provider {
        keys: Arc<Mutex<Value>>,
        asked: Arc<AtomicUsize>,
        serving: JoinHandle<()>,
        url: String,
    }

    impl Provider {
        async fn start(keys: Value) -> Self {
            let (keys, asked) = (Arc::new(Mutex::new(keys)), Arc::new(AtomicUsize::new(0)));
            let (shown, counted) = (keys.clone(), asked.clone());
            let show = move || {
                counted.fetch_add(1, Ordering::SeqCst);
                std::future::ready(Json(json!({ "keys": *shown.lock() })))
            };
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/keys", listener.local_addr().unwrap());
            let app = Router::new().route("/keys", get(show));
            let serving = tokio::spawn(async move {
                // One request for a connection, so that none outlives the provider.
                let app = app.layer(axum::middleware::map_response(
                    async |mut response: axum::response::Response| {
                        response.headers_mut().insert("connection", "close".parse().unwrap());
                        response
                    },
                ));
                let _ = axum::serve(listener, app).await;
            });
            Self { keys, asked, serving, url }
        }

        fn verifier(&self, fresh_for: Duration, ask_pause: Duration) -> Verifier {
            let jwks_public_endpoint = self.url.clone();
            let settings = TokenSettings { jwks_public_endpoint, ..TokenSettings::default() };
            let trust = Trust::default();
            let mut verifier = Verifier::new(&settings, &trust).unwrap();
            let endpoint =
                Endpoint::new(&self.url, Duration::from_secs(5), &BTreeMap::new(), &trust).unwrap();
            verifier.jwks = Some(Jwks { fresh_for, ask_pause, ..Jwks::new(endpoint) });
            verifier
        }
    }

    async fn check(verifier: &Verifier, token: &str) -> Result<Value, TokenError> {
        verifier.verify::<Value>(token).await.map(|claims| claims["sub"].clone())
    }

    const LONG: Duration = Duration::from_secs(3_600);

    #[tokio::test]
    async fn a_token_is_checked_with_the_key_that_it_names_and_an_unknown_name_asks_seldom() {
        // The secret is what many libraries would take: it is public here.
        let secret = json!({ "kid": "s", "kty": "oct", "k": "c2VjcmV0" });
        let odd = json!({ "kid": "odd", "kty": "of tomorrow" });
        let provider = Provider::start(json!([odd, secret, key("one", 0)])).await;
        let verifier = provider.verifier(LONG, LONG);
        let header = Header { kid: Some("s".to_owned()), ..Header::new(Algorithm::HS256) };
        let forged = encode(&header, &json!({}), &EncodingKey::from_secret(b"secret")).unwrap();
        assert_eq!(check(&verifier, &forged).await, Err(TokenError::Invalid));
        assert_eq!(check(&verifier, &token("one", 0)).await, Ok(json!("42")));
        assert_eq!(check(&verifier, &token("one", 1)).await, Err(TokenError::Invalid));
        for number in 0..20 {
            let unclear = check(&verifier, &token(&number.to_string(), 0)).await;
            assert_eq!(unclear, Err(TokenError::Unknown));
        }
        assert_eq!(provider.asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn who_names_a_new_key_may_come_again_though_strangers_name_others_all_the_while() {
        let provider = Provider::start(json!([key("one", 0)])).await;
        let verifier = provider.verifier(LONG, Duration::from_millis(300));
        assert_eq!(check(&verifier, &token("strange", 0)).await, Err(TokenError::Invalid));
        *provider.keys.lock() = json!([key("one", 0), key("two", 1)]);
        let new = token("two", 1);
        assert_eq!(check(&verifier, &new).await, Err(TokenError::Unknown));
        let taken = async {
            for number in 0.. {
                let _ = check(&verifier, &token(&format!("strange {number}"), 0)).await;
                match check(&verifier, &new).await {
                    Ok(user) => return user,
                    refused => assert_eq!(refused, Err(TokenError::Unknown)),
                }
            }
            unreachable!("numbers go on")
        };
        let taken = tokio::time::timeout(Duration::from_secs(30), taken).await;
        assert_eq!(taken, Ok(json!("42")));
        assert!(provider.asked.load(Ordering::SeqCst) <= 3);
    }

    #[tokio::test]
    async fn a_new_key_is_fetched_when_a_token_names_it() {
        let provider = Provider::start(json!([key("one", 0)])).await;
        let verifier = provider.verifier(LONG, Duration::ZERO);
        assert_eq!(check(&verifier, &token("two", 1)).await, Err(TokenError::Invalid));
        *provider.keys.lock() = json!([key("two", 1)]);
        assert_eq!(check(&verifier, &token("two", 1)).await, Ok(json!("42")));
        assert_eq!(check(&verifier, &token("one", 0)).await, Err(TokenError::Invalid));
    }

    #[tokio::test]
    async fn known_keys_go_on_while_their_provider_does_not_answer() {
        let provider = Provider::start(json!([key("one", 0)])).await;
        let verifier = provider.verifier(Duration::ZERO, Duration::ZERO);
        assert_eq!(check(&verifier, &token("one", 0)).await, Ok(json!("42")));
        provider.serving.abort();
        let _ = provider.serving.await;
        assert_eq!(check(&verifier, &token("one", 0)).await, Ok(json!("42")));
        assert_eq!(check(&verifier, &token("one", 1)).await, Err(TokenError::Invalid));
        assert_eq!(check(&verifier, &token("two", 1)).await, Err(TokenError::Unknown));
    }

    #[tokio::test]
    async fn keys_may_share_a_name_and_a_token_is_checked_with_each_that_fits() {
        let (key_of_curve, token_of_curve) = of_curve("one");
        let mut keys = vec![key_of_curve, key("one", 0), key("one", 1)];
        for _ in 0..keys.len() {
            let provider = Provider::start(json!(keys)).await;
            let verifier = provider.verifier(LONG, LONG);
            for token in [&token_of_curve, &token("one", 0), &token("one", 1)] {
                assert_eq!(check(&verifier, token).await, Ok(json!("42")), "{keys:?}");
            }
            keys.rotate_left(1);
        }
    }

    #[tokio::test]
    async fn a_key_is_used_with_the_algorithm_that_its_provider_names() {
        for (algorithm, outcome) in [
            ("ES256", Ok(json!("42"))),
            ("ES384", Err(TokenError::Invalid)),
            ("RS256", Err(TokenError::Invalid)),
            ("RSA-OAEP", Err(TokenError::Invalid)),
            ("of tomorrow", Err(TokenError::Invalid)),
        ] {
            let (mut key, token) = of_curve("one");
            key["alg"] = json!(algorithm);
            let provider = Provider::start(json!([key])).await;
            let verifier = provider.verifier(LONG, LONG);
            assert_eq!(check(&verifier, &token).await, outcome, "{algorithm}");
        }
    }
}
