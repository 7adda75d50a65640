//! Names that a message method cannot have, because something of that name would win silently.

use syn::Ident;

/// Inherent methods come before those of the calls trait.
const METHODS_OF_ACTOR_REF: [&str; 16] = [
    "activate",
    "clone",
    "defer",
    "downgrade",
    "id",
    "is_active",
    "is_stopped",
    "key",
    "kill",
    "mailbox_depth",
    "node",
    "read",
    "recipient",
    "send",
    "stop",
    "stopped",
];

/// Types of the standard prelude that fields are made of: a message of that name would hide them in
/// its module.
const PRELUDE_TYPES: [&str; 5] = ["Box", "Option", "Result", "String", "Vec"];

/// Refuses a method whose call nobody could reach, or whose message hides a standard type.
///
/// # Errors
/// One of the two is the case.
pub(crate) fn check(method: &Ident, message: &Ident) -> syn::Result<()> {
    let text = if METHODS_OF_ACTOR_REF.iter().any(|reserved| method == reserved) {
        format!(
            "every `ActorRef` has a method `{method}`, which would hide this call: rename it, or `#[skip]` it"
        )
    } else if PRELUDE_TYPES.iter().any(|name| message == name) {
        format!(
            "this method's message would be called `{message}` and hide the standard type from the others: rename it"
        )
    } else {
        return Ok(());
    };
    Err(syn::Error::new(method.span(), text))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// What the files of a folder and of those in it hold: methods stand beside what they are about.
    fn items_below(folder: &Path) -> Vec<syn::Item> {
        let entries = std::fs::read_dir(folder).expect("the library's source");
        let paths = entries.map(|entry| entry.expect("a file or a folder").path());
        let items = |path: PathBuf| match path.extension() {
            _ if path.is_dir() => items_below(&path),
            Some(extension) if extension == "rs" => {
                let text = std::fs::read_to_string(&path).expect("a file of the source");
                syn::parse_file(&text).expect("Rust").items
            }
            _ => Vec::new(),
        };
        paths.flat_map(items).collect()
    }

    #[test]
    fn every_method_of_actor_ref_is_reserved() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../althing/src");
        let is_actor_ref = |ty: &syn::Type| matches!(ty, syn::Type::Path(path) if path.path.segments[0].ident == "ActorRef");
        let methods: Vec<String> = items_below(&root)
            .into_iter()
            .filter_map(|item| match item {
                syn::Item::Impl(block)
                    if block.trait_.is_none() && is_actor_ref(&block.self_ty) =>
                {
                    Some(block.items)
                }
                _ => None,
            })
            .flatten()
            .filter_map(|item| match item {
                syn::ImplItem::Fn(method) if matches!(method.vis, syn::Visibility::Public(_)) => {
                    Some(method.sig.ident.to_string())
                }
                _ => None,
            })
            .collect();
        assert!(methods.contains(&"send".to_owned()), "{methods:?}");
        for method in methods {
            assert!(METHODS_OF_ACTOR_REF.contains(&method.as_str()), "{method}");
        }
    }
}
