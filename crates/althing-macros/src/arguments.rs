//! The arguments of the attribute itself: `#[actor(name = "shop.cart", version = 1, …)]`.

use proc_macro2::{Span, TokenStream};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Ident, LitInt, LitStr, Path, Token, Type, parenthesized};

const KNOWN: &str =
    "`name`, `label`, `version`, `options`, `key`, `derive`, `wire`, `durable` and `crate`";

/// What `#[actor(…)]` was given.
pub(crate) struct Arguments {
    /// The actor's name on the wire, with the labels that its nodes must have.
    pub(crate) name: LitStr,
    /// The version of its messages and state, if not the default.
    pub(crate) version: Option<LitInt>,
    /// A function that returns its `ActorOptions`.
    pub(crate) options: Option<Path>,
    /// The type that stands for its key.
    pub(crate) key: Option<Type>,
    /// Derives of every message.
    pub(crate) derives: Vec<Path>,
    /// Whether other nodes may send its messages.
    pub(crate) wire: bool,
    /// The field whose `commit` and `commit_rest` are the actor's.
    pub(crate) durable: Option<Ident>,
    /// Where the library is: `::althing`, unless re-exported or renamed.
    pub(crate) althing: Path,
}

impl Arguments {
    /// Stands in for arguments that could not be read, so that no other error follows from theirs.
    pub(crate) fn unreadable() -> Self {
        Self {
            name: LitStr::new("unreadable", Span::call_site()),
            version: None,
            options: None,
            key: None,
            derives: Vec::new(),
            wire: false,
            durable: None,
            althing: syn::parse_quote!(::althing),
        }
    }

    /// Parses what stands between the parentheses.
    ///
    /// # Errors
    /// An unknown, repeated or malformed argument, or no `name`.
    pub(crate) fn parse(tokens: TokenStream) -> syn::Result<Self> {
        let (mut name, mut version, mut options, mut althing) = (None, None, None, None);
        let mut key_type = None;
        let mut derives = None;
        let mut durable = None;
        let mut labels = Vec::new();
        let mut wire = false;
        let parser = syn::meta::parser(|meta| {
            let Some(key) = meta.path.get_ident().map(ToString::to_string) else {
                return Err(meta.error(format!("`#[actor]` takes {KNOWN}")));
            };
            let repeated = match key.as_str() {
                "name" => name.replace(meta.value()?.parse::<LitStr>()?).is_some(),
                "label" => {
                    labels.push(meta.value()?.parse::<LitStr>()?);
                    false
                }
                "version" => version.replace(meta.value()?.parse::<LitInt>()?).is_some(),
                "options" => options.replace(meta.value()?.parse::<Path>()?).is_some(),
                "key" => key_type.replace(meta.value()?.parse::<Type>()?).is_some(),
                "crate" => althing.replace(meta.value()?.call(Path::parse_mod_style)?).is_some(),
                "durable" => durable.replace(meta.value()?.parse::<Ident>()?).is_some(),
                "wire" => std::mem::replace(&mut wire, true),
                "derive" => {
                    let list;
                    parenthesized!(list in meta.input);
                    let paths = Punctuated::<Path, Token![,]>::parse_terminated(&list)?;
                    derives.replace(paths.into_iter().collect()).is_some()
                }
                _ => {
                    let text = format!("`#[actor]` has no argument `{key}`; it takes {KNOWN}");
                    return Err(meta.error(text));
                }
            };
            if repeated { Err(meta.error(format!("`{key}` is given twice"))) } else { Ok(()) }
        });
        parser.parse2(tokens)?;
        let name = name.ok_or_else(|| {
            let text = "an actor has a name on the wire: `#[actor(name = \"shop.cart\")]`";
            syn::Error::new(Span::call_site(), text)
        })?;
        check_name(&name)?;
        let name = with_labels(&name, &labels)?;
        if let Some(version) = &version {
            version.base10_parse::<u32>()?;
        }
        Ok(Self {
            name,
            version,
            options,
            key: key_type,
            derives: derives.unwrap_or_default(),
            wire,
            durable,
            althing: althing.unwrap_or_else(|| syn::parse_quote!(::althing)),
        })
    }
}

/// Labels are a part of the name, so that everybody who knows it knows them: in an order of their own
/// behind an `@`.
fn with_labels(name: &LitStr, labels: &[LitStr]) -> syn::Result<LitStr> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_/".contains(&byte);
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(is_allowed);
    for label in labels {
        let text = label.value();
        let parts = text.split_once('=');
        if text.len() > 64 || !parts.is_some_and(|(key, value)| is_word(key) && is_word(value)) {
            let text = "a label is `key=value`, of letters, digits, `.`, `-`, `_` and `/`, with 64 \
                        bytes at most";
            return Err(syn::Error::new(label.span(), text));
        }
    }
    if let Some(label) = labels.get(16) {
        return Err(syn::Error::new(label.span(), "an actor asks for 16 labels at most"));
    }
    let mut labels: Vec<String> = labels.iter().map(LitStr::value).collect();
    labels.sort_unstable();
    labels.dedup();
    match labels.is_empty() {
        true => Ok(name.clone()),
        false => Ok(LitStr::new(&format!("{}@{}", name.value(), labels.join(",")), name.span())),
    }
}

/// Names stand in logs, metrics and addresses: visible characters only.
pub(crate) fn check_name(name: &LitStr) -> syn::Result<()> {
    let text = name.value();
    if text.is_empty() {
        return Err(syn::Error::new(name.span(), "a name on the wire cannot be empty"));
    }
    match text.chars().find(|letter| letter.is_whitespace() || letter.is_control()) {
        Some(letter) => {
            let text = format!("a name on the wire cannot contain {letter:?}");
            Err(syn::Error::new(name.span(), text))
        }
        None => Ok(()),
    }
}
