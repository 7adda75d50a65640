//! Names that a call cannot have, because `ActorRef` has a method of that name, which would win silently.

use syn::Ident;

const METHODS_OF_ACTOR_REF: [&str; 12] = [
    "send",
    "read",
    "defer",
    "recipient",
    "downgrade",
    "stop",
    "kill",
    "stopped",
    "id",
    "is_active",
    "key",
    "clone",
];

/// Refuses a message method whose call nobody could reach.
///
/// # Errors
/// The name is one of `ActorRef`'s own.
pub(crate) fn check(method: &Ident) -> syn::Result<()> {
    if METHODS_OF_ACTOR_REF.iter().any(|reserved| method == reserved) {
        let text = format!(
            "every `ActorRef` has a method `{method}`, which would hide this call: rename it, or `#[skip]` it"
        );
        return Err(syn::Error::new(method.span(), text));
    }
    Ok(())
}
