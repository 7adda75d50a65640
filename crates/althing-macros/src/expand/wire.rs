//! What makes an actor reachable from other nodes: `Wire` for its messages, and `Remote` with their
//! names.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Generics, Member, Type, WherePredicate};

use super::{Expansion, span_of};
use crate::case;
use crate::generics;
use crate::model::{Complaints, Message};
use crate::owned::Relocation;
use crate::wire::encoding::{self, Field};

impl Expansion<'_> {
    /// Names have to be unique, and only an actor that is reached from elsewhere has any.
    pub(super) fn check_wire(&self, complaints: &mut Complaints) {
        let mut names: Vec<String> = Vec::new();
        for (message, _) in self.messages() {
            if let (Some(span), false) = (message.wire.span, self.arguments.wire) {
                let text = "only an actor with `#[actor(…, wire)]` is reached from other nodes";
                complaints.note::<()>(Err(syn::Error::new(span, text)));
            }
            let name = wire_name(message);
            // One method under two `#[cfg]`s is fine.
            if message.wire.travels && names.contains(&name) && message.cfgs.is_empty() {
                let text = format!("another message is called `{name}` on the wire");
                complaints.note::<()>(Err(syn::Error::new(message.method.span(), text)));
            }
            names.push(name);
        }
    }

    pub(super) fn wire(&self) -> Option<TokenStream> {
        if !self.arguments.wire {
            return None;
        }
        let (althing, actor) = (self.althing, &self.model.actor);
        let travelling = || self.messages().filter(|(message, _)| message.wire.travels);
        let encodings = travelling().map(|(message, carried)| self.encoding(message, carried));
        let registered = travelling().map(|(message, carried)| self.register(message, carried));
        let mut generics = self.model.generics.clone();
        let always = travelling().filter(|(message, _)| message.cfgs.is_empty());
        let bounds = always.flat_map(|(message, _)| self.bounds(message, true)).collect();
        add_bounds(&mut generics, bounds);
        let (parameters, _, bounds) = generics.split_for_impl();
        let codecs = if travelling().next().is_none() {
            quote! { _ }
        } else {
            quote! { codecs }
        };
        Some(quote! {
            #(#encodings)*
            #[allow(private_bounds)]
            impl #parameters #althing::Remote for #actor #bounds {
                fn codecs(#codecs: &mut #althing::Codecs<Self>) {
                    #(#registered)*
                }
            }
        })
    }

    /// Tells nodes of the codecs. For a generic actor only its user knows whether its messages
    /// travel, so such an actor does not.
    pub(super) fn codecs(&self) -> Option<TokenStream> {
        let althing = self.althing;
        let is_generic = self
            .messages()
            .filter(|(message, _)| message.wire.travels && message.cfgs.is_empty())
            .any(|(message, _)| !self.bounds(message, true).is_empty());
        (self.arguments.wire && !is_generic).then(|| {
            quote! {
                const CODECS: ::core::option::Option<fn(&mut #althing::Codecs<Self>)> =
                    ::core::option::Option::Some(<Self as #althing::Remote>::codecs);
            }
        })
    }

    fn encoding(&self, message: &Message, carried: &Generics) -> TokenStream {
        let althing = self.althing;
        let fields = self.wire_fields(message);
        let body = encoding::of_struct(althing, &fields);
        let message_type = self.message_type(message, carried);
        let mut generics = carried.clone();
        add_bounds(&mut generics, self.bounds(message, false));
        let (parameters, _, bounds) = generics.split_for_impl();
        let cfgs = &message.cfgs;
        let span = span_of(&message.method);
        quote_spanned! {span=>
            #(#cfgs)*
            impl #parameters #althing::Wire for #message_type #bounds { #body }
        }
    }

    /// At the place of the reply's type, which is what may lack a `Wire` here.
    fn register(&self, message: &Message, carried: &Generics) -> TokenStream {
        let (althing, cfgs) = (self.althing, &message.cfgs);
        let span = message.reply.as_ref().map_or_else(|| span_of(&message.method), Spanned::span);
        let (message_type, name) = (self.message_type(message, carried), wire_name(message));
        let way = message.kind.marker(span);
        quote_spanned! {span=>
            #(#cfgs)*
            codecs.message::<#message_type, #althing::#way>(#name);
        }
    }

    fn wire_fields(&self, message: &Message) -> Vec<Field> {
        let mut relocation = Relocation { actor: &self.model.actor, hiding: None };
        let fields = (1..).zip(&message.fields).map(|(number, field)| Field {
            number,
            member: Member::Named(field.ident.clone()),
            ty: relocation.of(&field.ty),
        });
        fields.collect()
    }

    /// That the types of a generic actor's message travel, which only its user can know.
    fn bounds(&self, message: &Message, with_reply: bool) -> Vec<WherePredicate> {
        let althing = self.althing;
        let mut relocation = Relocation { actor: &self.model.actor, hiding: None };
        let is_generic = |ty: &&Type| generics::is_generic(ty, &self.model.generics);
        let mut bounds: Vec<WherePredicate> = Vec::new();
        for ty in message.fields.iter().map(|field| &field.ty).filter(is_generic) {
            let ty = relocation.of(ty);
            bounds.push(syn::parse_quote!(#ty: #althing::wire::WireField));
        }
        if let Some(reply) = message.reply.as_ref().filter(|_| with_reply).filter(is_generic) {
            let reply = relocation.of(reply);
            bounds.push(syn::parse_quote!(#reply: #althing::Wire));
        }
        bounds
    }
}

fn add_bounds(generics: &mut Generics, bounds: Vec<WherePredicate>) {
    if !bounds.is_empty() {
        generics.make_where_clause().predicates.extend(bounds);
    }
}

fn wire_name(message: &Message) -> String {
    let given = message.wire.name.as_ref();
    given.map_or_else(|| case::unraw(&message.method), syn::LitStr::value)
}
