//! From the model to code, one file per thing generated: `actor`, `messages`, `handlers`, `calls`,
//! `wire`.
//!
//! Generated code names everything by its full path: an actor may well have a message called `Send`
//! or `Result`. Its spans lie on the method it comes from, so that a type error points there.

mod actor;
mod calls;
mod handlers;
mod messages;
mod wire;

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Generics, Ident, ItemImpl, Path, Type, Visibility};

use crate::arguments::Arguments;
use crate::case;
use crate::generics;
use crate::model::{Argument, Complaints, Message, Model};

/// Expands `#[actor(arguments)] item`.
///
/// What is not wrong is generated even beside errors, so that none of them makes the compiler
/// report others.
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
    let mut complaints = Complaints::default();
    let arguments = complaints.note(Arguments::parse(arguments));
    let arguments = arguments.unwrap_or_else(Arguments::unreadable);
    let model = Model::take(&mut block, &mut complaints);
    let generated = complaints.note(model).map(|model| {
        let expansion = Expansion::new(&model, &arguments, &mut complaints);
        expansion.check_wire(&mut complaints);
        expansion.generate()
    });
    // A handler is async whether it waits or not.
    block.attrs.push(syn::parse_quote!(#[allow(clippy::unused_async)]));
    let complaints = complaints.into_compile_errors();
    quote! { #block #complaints #generated }
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
    /// Each message with the generic parameters it carries.
    messages: Vec<(&'a Message, Generics)>,
}

impl<'a> Expansion<'a> {
    fn new(model: &'a Model, arguments: &'a Arguments, complaints: &mut Complaints) -> Self {
        let messages = model.messages.iter().filter_map(|message| {
            let fields: Vec<&Type> = message.fields.iter().map(|field| &field.ty).collect();
            let carried = generics::used_by(&fields, &model.generics, &message.method);
            Some((message, complaints.note(carried)?))
        });
        Self {
            messages: messages.collect(),
            model,
            arguments,
            althing: &arguments.althing,
            module: case::messages_module(&model.ident),
            calls: case::calls_trait(&model.ident),
        }
    }

    fn generate(&self) -> TokenStream {
        let actor = self.actor();
        let events = self.model.events.iter().map(|event| self.event_handler(event));
        let handlers = self.messages().map(|(message, carried)| self.handler(message, carried));
        let (messages, calls) = if self.messages.is_empty() {
            (TokenStream::new(), TokenStream::new())
        } else {
            (self.messages_module(), self.calls_trait())
        };
        let wire = self.wire();
        quote! { #actor #messages #(#handlers)* #(#events)* #calls #wire }
    }

    fn messages(&self) -> impl Iterator<Item = (&Message, &Generics)> {
        self.messages.iter().map(|(message, carried)| (*message, carried))
    }

    /// The message's type, as written beside the `impl`.
    fn message_type(&self, message: &Message, carried: &Generics) -> TokenStream {
        let (module, ident) = (&self.module, &message.ident);
        let (_, parameters, _) = carried.split_for_impl();
        quote! { #module::#ident #parameters }
    }

    /// `pub` if one of the methods is, `pub(crate)` otherwise: a trait has one visibility for all
    /// its methods.
    fn widest_visibility(&self) -> Visibility {
        if self.messages().any(|(message, _)| matches!(message.vis, Visibility::Public(_))) {
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
