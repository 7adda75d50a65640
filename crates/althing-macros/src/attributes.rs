//! The attributes of a method: its role (`#[delayed]`, `#[event]`, `#[skip]`) and its guards.
//!
//! They exist only inside `#[actor]`: they are taken off here, before the compiler would look for
//! them.

use proc_macro2::Span;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Lit, LitInt, LitStr, Path, Token};

use crate::arguments::check_name;

/// What the method's own attributes ask for.
#[derive(Default)]
pub(crate) struct MethodAttributes {
    /// `#[delayed]`: the reply comes later, through a `ReplyTo`.
    pub(crate) delayed: Option<Span>,
    /// `#[event]`: handles a topic's events.
    pub(crate) event: Option<Span>,
    /// `#[skip]`: an ordinary method.
    pub(crate) skip: Option<Span>,
    /// What is asked before the handler runs.
    pub(crate) guards: Guards,
    /// How the message travels between nodes.
    pub(crate) wire: Wire,
    /// `#[derive(Clone)]`: what the message derives besides what all of them do.
    pub(crate) derives: Derives,
}

/// Derives of one message.
#[derive(Default)]
pub(crate) struct Derives {
    /// Where they are written, if they are.
    pub(crate) span: Option<Span>,
    /// The traits.
    pub(crate) paths: Vec<Path>,
}

/// `#[wire(name = "put")]` or `#[wire(skip)]`.
pub(crate) struct Wire {
    /// Where it is written, if it is.
    pub(crate) span: Option<Span>,
    /// The message's name between nodes, if not the method's.
    pub(crate) name: Option<LitStr>,
    /// Whether it may come from other nodes.
    pub(crate) travels: bool,
}

impl Default for Wire {
    fn default() -> Self {
        Self { span: None, name: None, travels: true }
    }
}

/// What is asked before the handler runs, in this order.
#[derive(Default)]
pub(crate) struct Guards {
    /// `#[restrict(path)]`: `fn(&Self, &Message) -> Result<(), impl Into<Rejection>>`
    pub(crate) restrict: Option<Path>,
    /// `#[stash_unless(path)]`: `fn(&Self) -> bool`
    pub(crate) stash_unless: Option<Path>,
    /// `#[rate_limit(per_second = 10, burst = 20)]`
    pub(crate) rate_limit: Option<RateLimit>,
}

/// A token bucket: `burst` messages at once, refilled by `per_second`.
pub(crate) struct RateLimit {
    /// Where it is written.
    pub(crate) span: Span,
    /// Permits that come back each second: a `u32` or a `fn(&Self) -> u32`.
    pub(crate) per_second: Expr,
    /// Permits of a full bucket, likewise; `per_second` unless given.
    pub(crate) burst: Option<Expr>,
}

impl Guards {
    /// Where the first guard stands, if there is one.
    pub(crate) fn span(&self) -> Option<Span> {
        let restrict = self.restrict.as_ref().map(Spanned::span);
        let stash_unless = self.stash_unless.as_ref().map(Spanned::span);
        restrict.or(stash_unless).or(self.rate_limit.as_ref().map(|limit| limit.span))
    }
}

impl MethodAttributes {
    /// Takes our attributes off a method and leaves the others.
    ///
    /// # Errors
    /// A malformed, repeated or contradictory attribute. All of ours are taken off even then.
    pub(crate) fn take(attributes: &mut Vec<Attribute>) -> syn::Result<Self> {
        let (ours, others) = attributes.drain(..).partition::<Vec<_>, _>(is_ours);
        *attributes = others;
        let mut taken = Self::default();
        for attribute in &ours {
            taken.add(attribute)?;
        }
        let roles: Vec<Span> =
            [taken.delayed, taken.event, taken.skip].into_iter().flatten().collect();
        match roles.as_slice() {
            [] | [_] => Ok(taken),
            [_, second, ..] => {
                let text = "a method is one of `#[delayed]`, `#[event]` and `#[skip]`";
                Err(syn::Error::new(*second, text))
            }
        }
    }

    fn add(&mut self, attribute: &Attribute) -> syn::Result<()> {
        let path = attribute.path();
        let span = path.span();
        let repeated = if path.is_ident("derive") {
            let paths = attribute.parse_args_with(Punctuated::<_, Token![,]>::parse_terminated)?;
            self.derives.paths.extend(paths);
            self.derives.span = Some(span);
            false
        } else if path.is_ident("rate_limit") {
            self.guards.rate_limit.replace(RateLimit::parse(attribute)?).is_some()
        } else if path.is_ident("restrict") {
            self.guards.restrict.replace(attribute.parse_args()?).is_some()
        } else if path.is_ident("stash_unless") {
            self.guards.stash_unless.replace(attribute.parse_args()?).is_some()
        } else if path.is_ident("wire") {
            std::mem::replace(&mut self.wire, Wire::parse(attribute)?).span.is_some()
        } else {
            attribute.meta.require_path_only()?;
            let role = if path.is_ident("delayed") {
                &mut self.delayed
            } else if path.is_ident("event") {
                &mut self.event
            } else {
                &mut self.skip
            };
            role.replace(span).is_some()
        };
        if repeated { Err(syn::Error::new(span, "this attribute is given twice")) } else { Ok(()) }
    }
}

impl Wire {
    fn parse(attribute: &Attribute) -> syn::Result<Self> {
        let mut wire = Self { span: Some(attribute.path().span()), ..Self::default() };
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("name") {
                let name: LitStr = meta.value()?.parse()?;
                check_name(&name)?;
                wire.name = Some(name);
            } else if meta.path.is_ident("skip") {
                wire.travels = false;
            } else {
                return Err(meta.error("`wire` on a method takes `name = \"…\"` or `skip`"));
            }
            Ok(())
        })?;
        Ok(wire)
    }
}

impl RateLimit {
    fn parse(attribute: &Attribute) -> syn::Result<Self> {
        let (mut per_second, mut burst) = (None, None);
        attribute.parse_nested_meta(|meta| {
            let slot = if meta.path.is_ident("per_second") {
                &mut per_second
            } else if meta.path.is_ident("burst") {
                &mut burst
            } else {
                return Err(meta.error("`rate_limit` takes `per_second` and `burst`"));
            };
            let mut count: Expr = meta.value()?.parse()?;
            if let Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) = &mut count {
                let number = literal.base10_parse::<u32>()?;
                if number == 0 {
                    return Err(syn::Error::new(
                        literal.span(),
                        "a limit of 0 would admit nothing",
                    ));
                }
                // With its type, which a bare number would not have beside functions.
                *literal = LitInt::new(&format!("{number}u32"), literal.span());
            }
            if slot.replace(count).is_some() {
                return Err(meta.error("this limit is given twice"));
            }
            Ok(())
        })?;
        let span = attribute.path().span();
        let per_second = per_second.ok_or_else(|| {
            let text = "`rate_limit` needs `per_second`: a number, or a function of the actor";
            syn::Error::new(span, text)
        })?;
        Ok(Self { span, per_second, burst })
    }
}

fn is_ours(attribute: &Attribute) -> bool {
    let names =
        ["delayed", "derive", "event", "skip", "rate_limit", "restrict", "stash_unless", "wire"];
    names.iter().any(|name| attribute.path().is_ident(name))
}
