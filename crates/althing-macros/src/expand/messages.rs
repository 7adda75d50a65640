//! The module of the messages: one struct per method, its fields the method's parameters.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Generics, Ident, Path, Visibility};

use super::{Expansion, span_of};
use crate::case;
use crate::model::Message;
use crate::owned::Relocation;

impl Expansion<'_> {
    pub(super) fn messages_module(&self) -> TokenStream {
        let (vis, module) = (self.widest_visibility(), &self.module);
        let doc =
            format!(" The messages of `{}`, one for each call.", case::unraw(&self.model.ident));
        let hiding: Vec<Ident> = self.messages().map(|(it, _)| it.ident.clone()).collect();
        let structs =
            self.messages().map(|(message, carried)| self.message(message, carried, &hiding));
        quote! {
            #[doc = #doc]
            #[allow(dead_code, unused_imports)]
            #vis mod #module {
                use super::*;
                #(#structs)*
            }
        }
    }

    fn message(&self, message: &Message, carried: &Generics, hiding: &[Ident]) -> TokenStream {
        let Message { ident, cfgs, .. } = message;
        let mut relocation = Relocation { actor: &self.model.actor, hiding: Some(hiding) };
        let generics = relocation.of_generics(carried);
        let (parameters, bounds) = (&generics, &generics.where_clause);
        let vis = inside_module(&message.vis);
        let mut derives: Vec<&Path> = self.arguments.derives.iter().collect();
        for own in &message.derives {
            if !derives.iter().any(|known| is_same(known, own)) {
                derives.push(own);
            }
        }
        let derives = (!derives.is_empty()).then(|| quote! { #[derive(#(#derives),*)] });
        let doc = format!(" What `{}::{}` sends.", self.calls, case::unraw(&message.method));
        let fields = message.fields.iter().map(|field| {
            let (name, ty) = (&field.ident, relocation.of(&field.ty));
            let doc = format!(" The call's `{}`.", case::unraw(name));
            quote! { #[doc = #doc] #vis #name: #ty }
        });
        let body = if message.fields.is_empty() {
            quote! { ; }
        } else {
            quote! { #bounds { #(#fields),* } }
        };
        let span = span_of(&message.method);
        quote_spanned! {span=>
            #(#cfgs)*
            #[doc = #doc]
            #derives
            #vis struct #ident #parameters #body
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    one.to_token_stream().to_string() == other.to_token_stream().to_string()
}

/// A visibility written beside the `impl`, as it is written one module further in.
fn inside_module(vis: &Visibility) -> Visibility {
    let restricted = match vis {
        Visibility::Public(_) => return vis.clone(),
        Visibility::Inherited => return syn::parse_quote!(pub(super)),
        Visibility::Restricted(restricted) => &restricted.path,
    };
    let first = restricted.segments.first().map(|first| first.ident.to_string());
    let path: Path = match first.as_deref() {
        Some("crate") => return vis.clone(),
        Some("self") => return syn::parse_quote!(pub(super)),
        _ => syn::parse_quote!(super::#restricted),
    };
    syn::parse_quote!(pub(in #path))
}
