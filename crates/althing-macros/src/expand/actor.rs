//! `impl Actor`: name, version, options, and the hooks that the block has.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Type};

use super::{Expansion, parameter, span_of, takes_context, takes_subject};
use crate::model::{Argument, Hook};

impl Expansion<'_> {
    pub(super) fn actor(&self) -> TokenStream {
        let Self { model, arguments, althing, .. } = self;
        let actor = &model.actor;
        let (parameters, _, bounds) = model.generics.split_for_impl();
        let name = &arguments.name;
        let version = arguments.version.as_ref().map(|version| {
            quote! { const VERSION: u32 = #version; }
        });
        let options = arguments.options.as_ref().map(|options| {
            quote! { fn options() -> #althing::ActorOptions { #options() } }
        });
        let codecs = self.codecs();
        let durable = arguments.durable.as_ref().map(|field| self.durable(field));
        let key = arguments.key.as_ref().map(|key| self.key(key));
        let hooks = model.hooks.iter().map(|hook| self.hook(hook));
        quote! {
            impl #parameters #althing::Actor for #actor #bounds {
                const NAME: &'static str = #name;
                #version
                #options
                #codecs
                #durable
                #(#hooks)*
            }
            #key
        }
    }

    /// At the field, which may not be there, or have nothing to commit.
    fn durable(&self, field: &Ident) -> TokenStream {
        let althing = self.althing;
        quote_spanned! {field.span()=>
            const TURNS: #althing::Turns = #althing::Turns::Held;

            fn commit(&mut self, _: &mut #althing::Context<Self>) -> #althing::Commit {
                self.#field.commit()
            }

            fn commit_rest(&mut self, _: &mut #althing::Context<Self>) -> #althing::Commit {
                self.#field.commit_rest()
            }
        }
    }

    /// At the key's type, which may lack a `Display`.
    fn key(&self, key: &Type) -> TokenStream {
        let Self { model, althing, .. } = self;
        let actor = &model.actor;
        let (parameters, _, bounds) = model.generics.split_for_impl();
        let text =
            quote_spanned! {key.span()=> <#key as ::std::string::ToString>::to_string(self) };
        quote! {
            impl #parameters #althing::ActorKey<#actor> for #key #bounds {
                fn with_text<R>(&self, look: impl ::core::ops::FnOnce(&str) -> R) -> R {
                    look(&#text)
                }
            }
        }
    }

    /// Forwards by path: `Self::started` is the method of the block, which a method call on `&mut
    /// self` need not be.
    fn hook(&self, hook: &Hook) -> TokenStream {
        let Hook { method, cfgs, shape, arguments } = hook;
        let althing = self.althing;
        let span = span_of(method);
        let ctx = parameter("ctx", takes_context(arguments), span);
        let subject_name =
            shape.subject.map(|(name, _)| parameter(name, takes_subject(arguments), span));
        let subject = shape.subject.map(|(_, ty)| {
            let ty = format_ident!("{ty}");
            quote_spanned! {span=> , #subject_name: #althing::#ty }
        });
        let passed = arguments.iter().map(|argument| match argument {
            Argument::Subject => quote_spanned! {span=> #subject_name },
            _ => quote_spanned! {span=> #ctx },
        });
        let output = if shape.fallible {
            quote_spanned! {span=> ::core::result::Result<(), #althing::ActorError> }
        } else {
            quote_spanned! {span=> () }
        };
        quote_spanned! {span=>
            #(#cfgs)*
            fn #method(
                &mut self, #ctx: &mut #althing::Context<Self> #subject
            ) -> impl ::core::future::Future<Output = #output> + ::core::marker::Send {
                Self::#method(self #(, #passed)*)
            }
        }
    }
}
