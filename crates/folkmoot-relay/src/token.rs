//! Checks JSON web tokens. Each key is used with the algorithms of its own kind only, so that a
//! public key is never taken for a secret, and a token without a signature is refused.

mod jwks;
mod pem;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64ct::{Base64UrlUnpadded, Encoding};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::proxy::Trust;
use crate::proxy::http::Endpoint;
use crate::settings::{SettingsError, TokenSettings};
use jwks::{Jwks, NoKey};

/// How long a provider of keys may take.
const JWKS_TIMEOUT: Duration = Duration::from_secs(1);

/// A key with the algorithms of its kind.
type Key = (&'static [Algorithm], DecodingKey);

/// The keys of one kind of token.
pub(crate) struct Verifier {
    keys: Vec<Arc<Key>>,
    /// For tokens that name their key.
    jwks: Option<Jwks>,
    audience: String,
    issuer: String,
}

/// Why a token opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// Its time is over, or has not begun by our clock; a new one may help.
    Expired,
    /// Forged, of another issuer, or no token at all.
    Invalid,
    /// Whoever has the keys did not answer, or is asked again only later.
    Unknown,
}

const HMAC: &[Algorithm] = &[Algorithm::HS256, Algorithm::HS384, Algorithm::HS512];
const RSA: &[Algorithm] = &[Algorithm::RS256, Algorithm::RS384, Algorithm::RS512];
const ECDSA: &[Algorithm] = &[Algorithm::ES256, Algorithm::ES384];
const EDDSA: &[Algorithm] = &[Algorithm::EdDSA];

impl Verifier {
    pub(crate) fn new(settings: &TokenSettings, trust: &Trust) -> Result<Self, SettingsError> {
        let mut keys = Vec::new();
        if !settings.hmac_secret_key.is_empty() {
            let key = DecodingKey::from_secret(settings.hmac_secret_key.as_bytes());
            keys.push(Arc::new((HMAC, key)));
        }
        let wrong = |name, why: String| SettingsError::Invalid(format!("{name}: {why}"));
        type Read = fn(&[u8]) -> jsonwebtoken::errors::Result<DecodingKey>;
        type Check = fn(&[u8]) -> Result<(), String>;
        let (rsa, ecdsa): (Read, Read) = (DecodingKey::from_rsa_pem, DecodingKey::from_ec_pem);
        let pems: [(&str, &str, &'static [Algorithm], Read, Check); 3] = [
            ("rsa_public_key", &settings.rsa_public_key, RSA, rsa, pem::check_rsa),
            ("ecdsa_public_key", &settings.ecdsa_public_key, ECDSA, ecdsa, pem::check_ecdsa),
            // Another curve is refused where it is read.
            (
                "eddsa_public_key",
                &settings.eddsa_public_key,
                EDDSA,
                DecodingKey::from_ed_pem,
                |_| Ok(()),
            ),
        ];
        for (name, pem, algorithms, read, check) in pems {
            if !pem.is_empty() {
                let key = read(pem.as_bytes()).map_err(|error| wrong(name, error.to_string()))?;
                check(pem.as_bytes()).map_err(|why| wrong(name, why))?;
                keys.push(Arc::new((algorithms, key)));
            }
        }
        let (audience, issuer) = (settings.audience.clone(), settings.issuer.clone());
        let jwks = match settings.jwks_public_endpoint.as_str() {
            "" => None,
            url => {
                let endpoint = Endpoint::new(url, JWKS_TIMEOUT, &BTreeMap::new(), trust);
                let invalid =
                    |error| SettingsError::Invalid(format!("jwks_public_endpoint: {error}"));
                Some(Jwks::new(endpoint.map_err(invalid)?))
            }
        };
        Ok(Self { keys, jwks, audience, issuer })
    }

    /// What a token says, if a key of ours has signed it and its time is not over.
    pub(crate) async fn verify<T: DeserializeOwned>(&self, token: &str) -> Result<T, TokenError> {
        let header = decode_header(token).map_err(|_| TokenError::Invalid)?;
        if has_critical(token) {
            return Err(TokenError::Invalid);
        }
        let keys = self.keys(header.alg, header.kid.as_deref()).await?;
        let mut wanted = Validation::new(header.alg);
        // A token without an end has none.
        wanted.required_spec_claims.clear();
        wanted.leeway = 0;
        wanted.validate_nbf = true;
        match self.audience.as_str() {
            "" => wanted.validate_aud = false,
            audience => {
                wanted.set_audience(&[audience]);
                wanted.required_spec_claims.insert("aud".to_owned());
            }
        }
        if !self.issuer.is_empty() {
            wanted.set_issuer(&[&self.issuer]);
            wanted.required_spec_claims.insert("iss".to_owned());
        }
        let mut outcome = Err(TokenError::Invalid);
        for key in keys {
            outcome =
                decode(token, &key.1, &wanted).map(|token| token.claims).map_err(
                    |error| match error.kind() {
                        ErrorKind::ExpiredSignature | ErrorKind::ImmatureSignature => {
                            TokenError::Expired
                        }
                        _ => TokenError::Invalid,
                    },
                );
            if !matches!(outcome, Err(TokenError::Invalid)) {
                break;
            }
        }
        outcome
    }
}

impl Verifier {
    /// The keys that a token may be signed with: one of them.
    async fn keys(
        &self,
        algorithm: Algorithm,
        id: Option<&str>,
    ) -> Result<Vec<Arc<Key>>, TokenError> {
        let mut keys = match (&self.jwks, id) {
            (Some(jwks), Some(id)) => jwks.keys(id).await.map_err(|error| match error {
                NoKey::Unknown => TokenError::Invalid,
                NoKey::Unclear => TokenError::Unknown,
            })?,
            _ => self.keys.clone(),
        };
        keys.retain(|key| key.0.contains(&algorithm));
        Ok(keys)
    }
}

/// Whether a token says that who does not understand more of its head may not take it (RFC 7515, 4.1.11).
fn has_critical(token: &str) -> bool {
    let head = token.split('.').next().unwrap_or_default();
    let head = Base64UrlUnpadded::decode_vec(head).unwrap_or_default();
    let head = serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(&head);
    head.map_or(true, |head| head.contains_key("crit"))
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let algorithms: Vec<_> = self.keys.iter().map(|key| key.0).collect();
        formatter.debug_struct("Verifier").field("algorithms", &algorithms).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use jsonwebtoken::{EncodingKey, Header, encode};
    use serde_json::{Value, json};

    use super::*;
    use crate::claims::ConnectionClaims;

    fn signed(algorithm: Algorithm, secret: &str, claims: &Value) -> String {
        encode(&Header::new(algorithm), claims, &EncodingKey::from_secret(secret.as_bytes()))
            .unwrap()
    }

    fn check(settings: &TokenSettings, token: &str) -> Result<String, TokenError> {
        let claims = Verifier::new(settings, &Trust::default())
            .unwrap()
            .verify::<Value>(token)
            .now_or_never()
            .unwrap()?;
        Ok(claims["sub"].as_str().unwrap().to_owned())
    }

    fn hmac() -> TokenSettings {
        TokenSettings { hmac_secret_key: "secret".to_owned(), ..TokenSettings::default() }
    }

    #[test]
    fn only_what_the_key_has_signed_and_is_not_over_opens() {
        let claims = json!({"sub": "42", "exp": 4_000_000_000_u64});
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            assert_eq!(check(&hmac(), &signed(algorithm, "secret", &claims)).unwrap(), "42");
        }
        let endless = signed(Algorithm::HS256, "secret", &json!({"sub": "42"}));
        assert_eq!(check(&hmac(), &endless).unwrap(), "42");
        let over = signed(Algorithm::HS256, "secret", &json!({"sub": "42", "exp": 1}));
        assert_eq!(check(&hmac(), &over), Err(TokenError::Expired));
        let forged = signed(Algorithm::HS256, "guess", &claims);
        for token in ["", "a.b.c", &forged] {
            assert_eq!(check(&hmac(), token), Err(TokenError::Invalid), "{token}");
        }
    }

    #[test]
    fn a_token_ends_though_its_end_is_no_whole_number_or_before_all_others() {
        let opens = |exp: Value| {
            let token = signed(Algorithm::HS256, "secret", &json!({"sub": "42", "exp": exp}));
            let claims = Verifier::new(&hmac(), &Trust::default())
                .unwrap()
                .verify::<ConnectionClaims>(&token)
                .now_or_never()
                .unwrap();
            claims.map(|claims| claims.exp)
        };
        assert_eq!(opens(json!(4_000_000_000.5)), Ok(4_000_000_000));
        for over in [json!(0), json!(1.5)] {
            assert_eq!(opens(over), Err(TokenError::Expired));
        }
        for wrong in [json!(-1), json!("4000000000"), json!(null)] {
            assert_eq!(opens(wrong), Err(TokenError::Invalid));
        }
    }

    #[test]
    fn a_token_opens_nothing_before_its_time_however_that_is_written() {
        let opens = |nbf: Value| {
            let token = signed(Algorithm::HS256, "secret", &json!({"sub": "42", "nbf": nbf}));
            let verifier = Verifier::new(&hmac(), &Trust::default()).unwrap();
            let claims = verifier.verify::<ConnectionClaims>(&token).now_or_never().unwrap();
            claims.map(drop)
        };
        for over in [json!(1), json!(1.5), json!(null)] {
            assert_eq!(opens(over), Ok(()));
        }
        for early in [json!(4_000_000_000_u64), json!(4e9), json!(4_000_000_000.5)] {
            // Its issuer's clock may be ahead: its client is to come again.
            assert_eq!(opens(early.clone()), Err(TokenError::Expired), "{early}");
        }
        for wrong in [json!("4000000000"), json!(1e300), json!([1])] {
            assert_eq!(opens(wrong.clone()), Err(TokenError::Invalid), "{wrong}");
        }
    }

    #[test]
    fn a_token_without_a_signature_is_refused() {
        // {"alg":"none"} and {"sub":"42"}
        let token = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJzdWIiOiI0MiJ9.";
        assert_eq!(check(&hmac(), token), Err(TokenError::Invalid));
        let claims = token.split('.').nth(1).unwrap();
        for algorithm in ["None", "NONE", "", "HS256", "hs256", "RS256", "EdDSA"] {
            let header = json!({ "alg": algorithm, "typ": "JWT" }).to_string();
            let header = Base64UrlUnpadded::encode_string(header.as_bytes());
            for unsigned in [format!("{header}.{claims}."), format!("{header}.{claims}")] {
                assert_eq!(check(&hmac(), &unsigned), Err(TokenError::Invalid), "{algorithm}");
            }
        }
    }

    #[test]
    fn a_token_whose_head_has_to_be_understood_whole_is_refused() {
        let key = EncodingKey::from_secret(b"secret");
        let with = |head: Value| {
            let part = |it: Value| Base64UrlUnpadded::encode_string(it.to_string().as_bytes());
            let message = format!("{}.{}", part(head), part(json!({ "sub": "42" })));
            let algorithm = Algorithm::HS256;
            let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, algorithm);
            check(&hmac(), &format!("{message}.{}", signature.unwrap()))
        };
        assert_eq!(with(json!({ "alg": "HS256", "b64": true, "of": "tomorrow" })).unwrap(), "42");
        for critical in [json!(["b64"]), json!(["exp"]), json!([]), json!(null)] {
            let head = json!({ "alg": "HS256", "b64": false, "exp": 1, "crit": critical });
            assert_eq!(with(head), Err(TokenError::Invalid), "{critical}");
        }
    }

    #[test]
    fn a_public_key_is_never_taken_for_a_secret() {
        let pem = "-----BEGIN PUBLIC KEY-----\n\
            MCowBQYDK2VwAyEA2+Jj2UvNCvQiUPNYRgSi0cJSPiJI6Rs6D0UTeEpQVj8=\n\
            -----END PUBLIC KEY-----\n";
        let settings = TokenSettings { eddsa_public_key: pem.to_owned(), ..Default::default() };
        let rsa = "-----BEGIN PUBLIC KEY-----\n\
            MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtWWO+RASjrIuJXAQxLOR\n\
            FkoD6Wf2Kj2QQYO+WjKx/3TyLAYl4tJqqw19vKgVFrewWv6JhoZlYM2GieDqxbno\n\
            o+ukUqJ0ZyN8sP3/TEfYF+VcfoDX2ZJ+QbRga38u6lRtYiQ1XENNSSJEWtCKtu6S\n\
            JLBEESVJYAV4gYkdvC1awDK+B2NGM2gO2zJzBlvJSO8EisthBoVqYsuoUbliomgQ\n\
            4gNlSjm/9KMFo2n9nzisgV8V1qokgh+oaV0L1GFE/hLgy8F4mLWbPZd2DjR1FfHk\n\
            rdPmA637rJcELM67SiSmVOoAJ70jboF10oZIe0jai4hxPtQ5B1dnfUmS6lRVrlPR\n\
            zQIDAQAB\n\
            -----END PUBLIC KEY-----\n";
        let ecdsa = "-----BEGIN PUBLIC KEY-----\n\
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEDbeLAKeTMfhHQvt12M9z8e6wzbSz\n\
            u5h0yXMIXdmrHvRp8Jooqa0S3EOyNfb2SQDUlUPw9mvZ6CX4ojV7iI5lJg==\n\
            -----END PUBLIC KEY-----\n";
        let of = |settings: &dyn Fn(&mut TokenSettings)| {
            let mut one = TokenSettings::default();
            settings(&mut one);
            one
        };
        let all = [
            (pem, settings),
            (rsa, of(&|one| one.rsa_public_key = rsa.to_owned())),
            (ecdsa, of(&|one| one.ecdsa_public_key = ecdsa.to_owned())),
        ];
        for (public, settings) in all {
            // Also where there is a secret too, and with the line end of the file or without it.
            let both = TokenSettings { hmac_secret_key: "secret".into(), ..settings.clone() };
            for (settings, secret) in
                [&settings, &both].into_iter().flat_map(|one| [(one, public), (one, public.trim())])
            {
                for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
                    let token = signed(algorithm, secret, &json!({"sub": "42"}));
                    assert_eq!(check(settings, &token), Err(TokenError::Invalid));
                }
            }
        }
    }

    #[test]
    fn audience_and_issuer_are_wanted_when_they_are_set() {
        let settings = || TokenSettings { audience: "chat".into(), issuer: "us".into(), ..hmac() };
        let with = |claims: Value| signed(Algorithm::HS256, "secret", &claims);
        let good = with(json!({"sub": "42", "aud": "chat", "iss": "us"}));
        assert_eq!(check(&settings(), &good).unwrap(), "42");
        for claims in [
            json!({"sub": "42"}),
            json!({"sub": "42", "aud": "chat"}),
            json!({"sub": "42", "aud": "other", "iss": "us"}),
            json!({"sub": "42", "aud": "chat", "iss": "them"}),
        ] {
            assert_eq!(check(&settings(), &with(claims)), Err(TokenError::Invalid));
        }
    }
}
