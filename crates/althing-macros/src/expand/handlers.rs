//! The handler impls: each passes the fields of its message to the method, after the guards have
//! admitted it.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Generics, Ident, Type};

use super::{Expansion, parameter, span_of, takes_context, takes_subject};
use crate::attributes::RateLimit;
use crate::case;
use crate::model::{Argument, Event, Kind, Message};

impl Expansion<'_> {
    pub(super) fn handler(&self, message: &Message, carried: &Generics) -> TokenStream {
        let (althing, actor) = (self.althing, &self.model.actor);
        let (parameters, _, bounds) = self.model.generics.split_for_impl();
        let Message { cfgs, reply, .. } = message;
        let reply: Type = reply.clone().unwrap_or_else(|| syn::parse_quote!(()));
        let span = span_of(&message.method);
        let message_type = self.message_type(message, carried);
        let trait_name = Ident::new(
            match message.kind {
                Kind::Write => "Handler",
                Kind::Read => "ReadHandler",
                Kind::Delayed => "DelayedHandler",
            },
            span,
        );
        let admit = self.admit(message, &message_type);
        let handle = self.handle(message, &message_type);
        let way = match message.kind {
            // The handler itself says so.
            Kind::Write => None,
            Kind::Read => Some(Ident::new("Read", span)),
            Kind::Delayed => Some(Ident::new("Delayed", span)),
        };
        let receives = way.map(|way| {
            quote_spanned! {span=>
                #(#cfgs)*
                impl #parameters #althing::Receives<#message_type> for #actor #bounds {
                    type Reply = #reply;
                    type Way = #althing::#way;
                }
            }
        });
        quote_spanned! {span=>
            #(#cfgs)*
            impl #parameters #althing::#trait_name<#message_type> for #actor #bounds {
                type Reply = #reply;
                #admit
                #handle
            }
            #receives
        }
    }

    /// The trait's method: a plain function that returns the method's own future, with nothing
    /// wrapped around it.
    fn handle(&self, message: &Message, message_type: &TokenStream) -> TokenStream {
        let althing = self.althing;
        let Message { method, arguments, .. } = message;
        let span = span_of(method);
        let message_name = parameter("message", !message.fields.is_empty(), span);
        let ctx = parameter("ctx", takes_context(arguments), span);
        let (receiver, context) = receivers(message.kind, self, span);
        let name = Ident::new(if message.kind == Kind::Read { "read" } else { "handle" }, span);
        let is_delayed = message.kind == Kind::Delayed;
        let reply =
            is_delayed.then(|| quote_spanned! {span=> reply: #althing::ReplyTo<Self::Reply>, });
        let output = if is_delayed {
            quote_spanned! {span=> () }
        } else {
            quote_spanned! {span=> Self::Reply }
        };
        let passed = arguments.iter().map(|argument| match argument {
            Argument::Field(field) => quote_spanned! {span=> #message_name.#field },
            Argument::Reply => quote_spanned! {span=> reply },
            Argument::Context | Argument::Subject => quote_spanned! {span=> #ctx },
        });
        quote_spanned! {span=>
            fn #name(
                #receiver, #message_name: #message_type, #reply #ctx: #context
            ) -> impl ::core::future::Future<Output = #output> + ::core::marker::Send {
                self.#method(#(#passed),*)
            }
        }
    }

    /// The permit is taken last: guards run again for a message that leaves the stash, and it would
    /// pay twice.
    fn admit(&self, message: &Message, message_type: &TokenStream) -> Option<TokenStream> {
        let guards = &message.guards;
        let span = guards.span()?.resolved_at(Span::call_site());
        let althing = self.althing;
        let rate_limit =
            guards.rate_limit.as_ref().map(|limit| self.take_permit(limit, &message.method));
        let message_name = parameter("message", guards.restrict.is_some(), span);
        let ctx = parameter("ctx", rate_limit.is_some(), span);
        let (receiver, context) = receivers(message.kind, self, span);
        let restrict = guards.restrict.as_ref().map(|predicate| {
            quote_spanned! {span=>
                if let ::core::result::Result::Err(reason) = #predicate(self, #message_name) {
                    return #althing::Admission::Reject(#althing::Rejection::restricted(reason));
                }
            }
        });
        let stash = guards.stash_unless.as_ref().map(|predicate| {
            quote_spanned! {span=>
                if !#predicate(self) {
                    return #althing::Admission::Stash;
                }
            }
        });
        Some(quote_spanned! {span=>
            fn admit(
                #receiver, #message_name: &#message_type, #ctx: #context
            ) -> #althing::Admission {
                #restrict
                #stash
                #rate_limit
                #althing::Admission::Run
            }
        })
    }

    fn take_permit(&self, limit: &RateLimit, method: &Ident) -> TokenStream {
        let RateLimit { span, per_second, burst } = limit;
        let (althing, name) = (self.althing, case::unraw(method));
        let span = span.resolved_at(Span::call_site());
        let burst = burst.as_ref().map_or_else(
            || quote_spanned! {span=> per_second },
            |burst| quote_spanned! {span=> #althing::Rate::of(#burst, &*self) },
        );
        quote_spanned! {span=>
            let per_second = #althing::Rate::of(#per_second, &*self);
            let burst = #burst;
            if let ::core::result::Result::Err(reason) = ctx.take_permit(#name, per_second, burst) {
                return #althing::Admission::Reject(reason);
            }
        }
    }

    pub(super) fn event_handler(&self, event: &Event) -> TokenStream {
        let (althing, actor) = (self.althing, &self.model.actor);
        let (parameters, _, bounds) = self.model.generics.split_for_impl();
        let Event { method, cfgs, payload, arguments } = event;
        let span = span_of(method);
        let event_name = parameter("event", takes_subject(arguments), span);
        let ctx = parameter("ctx", takes_context(arguments), span);
        let passed = arguments.iter().map(|argument| match argument {
            Argument::Subject => &event_name,
            _ => &ctx,
        });
        quote_spanned! {span=>
            #(#cfgs)*
            impl #parameters #althing::EventHandler<#payload> for #actor #bounds {
                fn event(
                    &mut self, #event_name: &#althing::Published<#payload>, #ctx: &mut #althing::Context<Self>
                ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
                    Self::#method(self #(, #passed)*)
                }
            }
        }
    }
}

/// How a handler of this kind takes the actor and the context.
fn receivers(kind: Kind, expansion: &Expansion<'_>, span: Span) -> (TokenStream, TokenStream) {
    let althing = expansion.althing;
    match kind {
        Kind::Read => (quote! { &self }, quote_spanned! {span=> &#althing::Context<Self> }),
        Kind::Write | Kind::Delayed => {
            (quote! { &mut self }, quote_spanned! {span=> &mut #althing::Context<Self> })
        }
    }
}
