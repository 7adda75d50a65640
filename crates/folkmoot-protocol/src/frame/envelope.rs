//! Commands, replies and pushes are envelopes: a few head fields and at most one body, which JSON
//! writes as a key of the same object (`{"id":1,"rpc":{…}}`). Writing derives from serde's
//! `flatten`; reading cannot, since `flatten` buffers and would lose raw payloads, so it is
//! generated here. The first body wins, as in the original server; further ones and unknown keys
//! are skipped.

/// Whether a field is left out of JSON.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Generates `Deserialize` for an envelope from its head fields and the keys of its bodies.
macro_rules! deserialize_envelope {
    ($envelope:ident, head { $($field:ident),* }, $slot:ident: $body:ident { $($key:literal => $variant:ident),* $(,)? }) => {
        impl<'de> serde::Deserialize<'de> for $envelope {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;

                impl<'de> serde::de::Visitor<'de> for Fields {
                    type Value = $envelope;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        formatter.write_str(concat!("a ", stringify!($envelope), " object"))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<$envelope, A::Error> {
                        let mut envelope = $envelope::default();
                        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                            match &*key {
                                $(stringify!($field) => envelope.$field = map.next_value()?,)*
                                $($key => {
                                    let body: Option<_> = map.next_value()?;
                                    envelope.$slot = envelope.$slot.or(body.map($body::$variant));
                                })*
                                _ => {
                                    map.next_value::<serde::de::IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(envelope)
                    }
                }

                deserializer.deserialize_map(Fields)
            }
        }
    };
}

pub(super) use deserialize_envelope;
