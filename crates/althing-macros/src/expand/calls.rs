//! The extension trait: one method per message, so that a call reads like a call of the actor's own
//! method.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Generics;

use super::{Expansion, span_of};
use crate::case;
use crate::model::Message;
use crate::owned::Relocation;

impl Expansion<'_> {
    /// A private type in the signature of a private method is right, though the trait is as visible
    /// as the most visible of them.
    pub(super) fn calls_trait(&self) -> TokenStream {
        let Self { model, althing, calls, .. } = self;
        let vis = self.widest_visibility();
        let doc = format!(" The calls that an `ActorRef<{}>` takes.", case::unraw(&model.ident));
        let (parameters, names, bounds) = model.generics.split_for_impl();
        let actor = &model.actor;
        let declared = self.messages().map(|(message, carried)| {
            let (docs, cfgs) = (self.call_docs(message), &message.cfgs);
            let signature = self.call_signature(message, carried);
            quote! { #docs #(#cfgs)* #signature; }
        });
        let defined = self.messages().map(|(message, carried)| {
            let cfgs = &message.cfgs;
            let signature = self.call_signature(message, carried);
            let body = self.call_body(message);
            quote! { #(#cfgs)* #signature { #body } }
        });
        quote! {
            #[doc = #doc]
            #[allow(dead_code, private_bounds, private_interfaces)]
            #vis trait #calls #parameters #bounds {
                #(#declared)*
            }
            impl #parameters #calls #names for #althing::ActorRef<#actor> #bounds {
                #(#defined)*
            }
        }
    }

    fn call_docs(&self, message: &Message) -> TokenStream {
        if message.docs.is_empty() {
            let doc = format!(" Sends `{}::{}`.", self.module, message.ident);
            return quote! { #[doc = #doc] };
        }
        let docs = &message.docs;
        quote! { #(#docs)* }
    }

    fn call_signature(&self, message: &Message, carried: &Generics) -> TokenStream {
        let (althing, actor, method) = (self.althing, &self.model.actor, &message.method);
        let span = span_of(method);
        let mut relocation = Relocation { actor, hiding: None };
        let fields = message.fields.iter().map(|field| {
            let (name, ty) = (&field.ident, relocation.of(&field.ty));
            quote! { #name: #ty }
        });
        let kind = message.kind.marker(span);
        let message_type = self.message_type(message, carried);
        quote_spanned! {span=>
            fn #method(&self #(, #fields)*)
                -> #althing::Call<'_, #actor, #message_type, #althing::#kind>
        }
    }

    fn call_body(&self, message: &Message) -> TokenStream {
        let (module, ident) = (&self.module, &message.ident);
        let span = span_of(&message.method);
        let fields = message.fields.iter().map(|field| &field.ident);
        if message.fields.is_empty() {
            quote_spanned! {span=> self.send(#module::#ident) }
        } else {
            quote_spanned! {span=> self.send(#module::#ident { #(#fields),* }) }
        }
    }
}
