//! From the model to code, one file per thing generated: `actor`, `messages`, `handlers`, `calls`.
//!
//! Generated code names everything by its full path: an actor may well have a message called `Send` or `Result`.
//! Its spans lie on the method it comes from, so that a type error points there.

mod actor;
mod calls;
mod handlers;
mod messages;

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Generics, Ident, ItemImpl, Path, Type, Visibility};

use crate::arguments::Arguments;
use crate::case;
use crate::generics;
use crate::model::{Argument, Message, Model};

/// Expands `#[actor(arguments)] item`.
///
/// After an error the block itself is still emitted, so that the compiler does not also report its methods as missing.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut block: ItemImpl = match syn::parse2(item) {
        Ok(block) => block,
        Err(error) => {
            let text = "`#[actor]` goes on an inherent `impl` block";
            let mut refusal = syn::Error::new(error.span(), text);
            refusal.combine(error);
            return refusal.into_compile_error();
        }
    };
    let arguments = Arguments::parse(arguments);
    let model = Model::take(&mut block);
    let generated = match (arguments, model) {
        (Ok(arguments), Ok(model)) => {
            Expansion::new(&model, &arguments).and_then(|it| it.generate())
        }
        (Err(mut first), Err(second)) => {
            first.combine(second);
            Err(first)
        }
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    };
    let generated = generated.unwrap_or_else(syn::Error::into_compile_error);
    quote! { #block #generated }
}

/// What every part of the expansion needs to know.
struct Expansion<'a> {
    model: &'a Model,
    arguments: &'a Arguments,
    althing: &'a Path,
    /// The module of the messages.
    module: Ident,
    /// The extension trait.
    calls: Ident,
    /// Of each message, in the model's order.
    carried: Vec<Generics>,
}

impl<'a> Expansion<'a> {
    fn new(model: &'a Model, arguments: &'a Arguments) -> syn::Result<Self> {
        let carried = model.messages.iter().map(|message| {
            let fields: Vec<&Type> = message.fields.iter().map(|field| &field.ty).collect();
            generics::used_by(&fields, &model.generics, &message.method)
        });
        Ok(Self {
            model,
            arguments,
            althing: &arguments.althing,
            module: case::messages_module(&model.ident),
            calls: case::calls_trait(&model.ident),
            carried: carried.collect::<syn::Result<_>>()?,
        })
    }

    fn generate(&self) -> syn::Result<TokenStream> {
        let actor = self.actor();
        let events = self.model.events.iter().map(|event| self.event_handler(event));
        let handlers = self.messages().map(|(message, carried)| self.handler(message, carried));
        let (messages, calls) = if self.model.messages.is_empty() {
            (TokenStream::new(), TokenStream::new())
        } else {
            (self.messages_module()?, self.calls_trait())
        };
        Ok(quote! { #actor #messages #(#handlers)* #(#events)* #calls })
    }

    /// Each message with the generic parameters it carries.
    fn messages(&self) -> impl Iterator<Item = (&Message, &Generics)> {
        self.model.messages.iter().zip(&self.carried)
    }

    /// The message's type, as written beside the `impl`.
    fn message_type(&self, message: &Message, carried: &Generics) -> TokenStream {
        let (module, ident) = (&self.module, &message.ident);
        let (_, parameters, _) = carried.split_for_impl();
        quote! { #module::#ident #parameters }
    }

    /// `pub` if one of the methods is, `pub(crate)` otherwise: a trait has one visibility for all its methods.
    fn widest_visibility(&self) -> Visibility {
        let is_public = |message: &Message| matches!(message.vis, Visibility::Public(_));
        if self.model.messages.iter().any(is_public) {
            syn::parse_quote!(pub)
        } else {
            syn::parse_quote!(pub(crate))
        }
    }
}

/// Where `method` is written, seen as code of the macro, which lints leave alone.
fn span_of(method: &Ident) -> Span {
    method.span().resolved_at(Span::call_site())
}

/// The name of a generated parameter: with an underscore if the body does not use it.
fn parameter(name: &str, is_used: bool, span: Span) -> Ident {
    if is_used {
        format_ident!("{name}", span = span)
    } else {
        format_ident!("_{name}", span = span)
    }
}

fn takes_context(arguments: &[Argument]) -> bool {
    arguments.iter().any(|argument| matches!(argument, Argument::Context))
}

fn takes_subject(arguments: &[Argument]) -> bool {
    arguments.iter().any(|argument| matches!(argument, Argument::Subject))
}
