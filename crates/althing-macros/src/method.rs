//! The role of one method: message, event, hook or ordinary, as its signature and attributes tell.
//!
//! The context is the parameter of type `Context`, the reply slot that of type `ReplyTo`, whatever
//! their names and places; all others are fields of the message. Nothing is guessed from the number
//! of parameters.

use syn::spanned::Spanned;
use syn::{
    Attribute, FnArg, GenericArgument, ImplItemFn, Pat, PatType, PathArguments, PathSegment,
    Receiver, ReturnType, Signature, Type,
};

use crate::attributes::{Guards, MethodAttributes};
use crate::model::{Argument, Event, Field, Hook, HookShape, Kind, Message};
use crate::owned::check_owned;
use crate::{case, reserved};

const HOOKS: [HookShape; 3] = [
    HookShape { name: "started", subject: None, fallible: true },
    HookShape { name: "stopping", subject: Some(("reason", "StopReason")), fallible: false },
    HookShape { name: "terminated", subject: Some(("other", "Terminated")), fallible: false },
];

/// What a method is for.
#[allow(clippy::large_enum_variant, reason = "one lives at a time, for a moment")]
pub(crate) enum Role {
    /// Handles a message.
    Message(Message),
    /// Handles a topic's events.
    Event(Event),
    /// Runs when the actor's life changes.
    Hook(Hook),
    /// Nothing of ours.
    Ordinary,
}

/// Finds a method's role.
///
/// # Errors
/// A signature that its role does not allow, at the place that is wrong.
pub(crate) fn role(method: &ImplItemFn, attributes: MethodAttributes) -> syn::Result<Role> {
    let shape = HOOKS.iter().find(|hook| method.sig.ident == hook.name);
    let receiver = method.sig.receiver();
    if attributes.skip.is_some() {
        refuse_guards(&attributes.guards, "a skipped method")?;
        return Ok(Role::Ordinary);
    }
    let (Some(_), Some(receiver)) = (&method.sig.asyncness, receiver) else {
        return ordinary(method, &attributes, shape.filter(|_| receiver.is_some()));
    };
    check_signature(&method.sig, receiver)?;
    if attributes.event.is_some() || shape.is_some() {
        refuse_message_attributes(&attributes)?;
    }
    if let Some(span) = attributes.event {
        refuse_guards(&attributes.guards, "an event")?;
        return Ok(Role::Event(event(method, span)?));
    }
    if let Some(shape) = shape {
        refuse_guards(&attributes.guards, "a hook")?;
        return Ok(Role::Hook(hook(method, shape)?));
    }
    Ok(Role::Message(message(method, receiver, attributes)?))
}

fn ordinary(
    method: &ImplItemFn,
    attributes: &MethodAttributes,
    hook: Option<&HookShape>,
) -> syn::Result<Role> {
    let of_messages = attributes.wire.span.or(attributes.derives.span);
    let of_handlers = attributes.delayed.or(attributes.event).or(attributes.guards.span());
    if let Some(span) = of_handlers.or(of_messages) {
        let text = "only an `async fn` with `&self` or `&mut self` handles messages or events";
        return Err(syn::Error::new(span, text));
    }
    match hook {
        Some(hook) => {
            let text = format!(
                "`{}` is a hook of every actor: make it an `async fn`, rename it, or `#[skip]` it",
                hook.name
            );
            Err(syn::Error::new(method.sig.ident.span(), text))
        }
        None => Ok(Role::Ordinary),
    }
}

fn refuse_guards(guards: &Guards, what: &str) -> syn::Result<()> {
    guards.span().map_or(Ok(()), |span| {
        let text = format!("guards stand before messages: {what} has no sender to refuse");
        Err(syn::Error::new(span, text))
    })
}

fn refuse_message_attributes(attributes: &MethodAttributes) -> syn::Result<()> {
    attributes.wire.span.or(attributes.derives.span).map_or(Ok(()), |span| {
        let text = "this is for messages: events and hooks have none of their own";
        Err(syn::Error::new(span, text))
    })
}

fn check_signature(signature: &Signature, receiver: &Receiver) -> syn::Result<()> {
    if receiver.reference.is_none() || receiver.colon_token.is_some() {
        let text = "a handler borrows its actor: take `&self` to read or `&mut self` to write";
        return Err(syn::Error::new_spanned(receiver, text));
    }
    if let Some(param) = signature.generics.params.first() {
        let text = "a message is one type: make this method not generic, or `#[skip]` it";
        return Err(syn::Error::new_spanned(param, text));
    }
    if let Some(clause) = &signature.generics.where_clause {
        let text = "bounds of messages go on the `impl`, where their handlers can see them";
        return Err(syn::Error::new_spanned(clause, text));
    }
    match &signature.unsafety {
        Some(keyword) => {
            let text = "anyone can send a message: an unsafe method cannot handle one";
            Err(syn::Error::new_spanned(keyword, text))
        }
        None => Ok(()),
    }
}

fn message(
    method: &ImplItemFn,
    receiver: &Receiver,
    attributes: MethodAttributes,
) -> syn::Result<Message> {
    let kind = match (attributes.delayed, receiver.mutability) {
        (Some(_), Some(_)) => Kind::Delayed,
        (Some(_), None) => {
            let text = "a delayed handler takes `&mut self`";
            return Err(syn::Error::new_spanned(receiver, text));
        }
        (None, Some(_)) => Kind::Write,
        (None, None) => Kind::Read,
    };
    let ident = case::message_ident(&method.sig.ident)?;
    reserved::check(&method.sig.ident, &ident)?;
    let (mut fields, mut arguments, mut delayed_reply) = (Vec::new(), Vec::new(), None);
    for typed in parameters(&method.sig) {
        if is_context(typed) {
            check_context(typed, kind)?;
            arguments.push(Argument::Context);
        } else if let Some(reply) = last_segment(&typed.ty).filter(|last| last.ident == "ReplyTo") {
            check_reply_slot(typed, kind)?;
            let twice = delayed_reply.replace(only_type_argument(reply)?.clone()).is_some();
            refuse_second(twice, typed, "reply slot")?;
            arguments.push(Argument::Reply);
        } else {
            let field = field(typed)?;
            arguments.push(Argument::Field(field.ident.clone()));
            fields.push(field);
        }
    }
    check_one_context(method)?;
    Ok(Message {
        method: method.sig.ident.clone(),
        ident,
        kind,
        vis: method.vis.clone(),
        docs: kept(&method.attrs, &["doc"]),
        cfgs: kept(&method.attrs, &["cfg"]),
        fields,
        arguments,
        reply: reply(method, kind, delayed_reply)?,
        guards: attributes.guards,
        wire: attributes.wire,
        derives: attributes.derives.paths,
    })
}

fn reply(method: &ImplItemFn, kind: Kind, delayed: Option<Type>) -> syn::Result<Option<Type>> {
    let reply = match (kind, &method.sig.output) {
        (Kind::Delayed, ReturnType::Type(_, ty)) => {
            let text = "a delayed handler replies through its `ReplyTo` and returns nothing";
            return Err(syn::Error::new_spanned(ty, text));
        }
        (Kind::Delayed, ReturnType::Default) => Some(delayed.ok_or_else(|| {
            let text = "a delayed handler takes its reply slot: `reply: ReplyTo<Reply>`";
            syn::Error::new(method.sig.ident.span(), text)
        })?),
        (_, ReturnType::Type(_, ty)) => Some((**ty).clone()),
        (_, ReturnType::Default) => None,
    };
    if let Some(reply) = &reply {
        check_owned(reply, "replies")?;
    }
    Ok(reply)
}

fn event(method: &ImplItemFn, attribute: proc_macro2::Span) -> syn::Result<Event> {
    let mut payload = None;
    let mut arguments = Vec::new();
    for typed in parameters(&method.sig) {
        let published = last_segment(&typed.ty).filter(|last| last.ident == "Published");
        if is_context(typed) {
            check_context(typed, Kind::Write)?;
            arguments.push(Argument::Context);
        } else if let (Some(published), Type::Reference(_)) = (published, &*typed.ty) {
            let twice = payload.replace(only_type_argument(published)?.clone()).is_some();
            refuse_second(twice, typed, "event")?;
            arguments.push(Argument::Subject);
        } else {
            let text = "an event handler takes `event: &Published<T>` and the context, no more";
            return Err(syn::Error::new_spanned(typed, text));
        }
    }
    check_one_context(method)?;
    let payload = payload.ok_or_else(|| {
        syn::Error::new(attribute, "an event handler takes the event: `event: &Published<T>`")
    })?;
    check_owned(&payload, "events")?;
    let cfgs = kept(&method.attrs, &["cfg"]);
    Ok(Event { method: method.sig.ident.clone(), cfgs, payload, arguments })
}

fn hook(method: &ImplItemFn, shape: &'static HookShape) -> syn::Result<Hook> {
    let mut arguments = Vec::new();
    let mut told = false;
    for typed in parameters(&method.sig) {
        if is_context(typed) {
            check_context(typed, Kind::Write)?;
            arguments.push(Argument::Context);
            continue;
        }
        let takes =
            shape.subject.map_or_else(String::new, |(name, ty)| format!(" and `{name}: {ty}`"));
        if told || shape.subject.is_none() {
            let text = format!("the hook `{}` takes the context{takes}, no more", shape.name);
            return Err(syn::Error::new_spanned(typed, text));
        }
        told = true;
        arguments.push(Argument::Subject);
    }
    check_one_context(method)?;
    if shape.fallible && matches!(method.sig.output, ReturnType::Default) {
        let text = format!("the hook `{}` returns `Result<(), ActorError>`", shape.name);
        return Err(syn::Error::new(method.sig.ident.span(), text));
    }
    let cfgs = kept(&method.attrs, &["cfg"]);
    Ok(Hook { method: method.sig.ident.clone(), cfgs, shape, arguments })
}

fn parameters(signature: &Signature) -> impl Iterator<Item = &PatType> {
    signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => Some(typed),
        FnArg::Receiver(_) => None,
    })
}

fn field(typed: &PatType) -> syn::Result<Field> {
    check_owned(&typed.ty, "messages")?;
    match &*typed.pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
            Ok(Field { ident: name.ident.clone(), ty: (*typed.ty).clone() })
        }
        pattern => {
            let text = "a parameter's name is a field of the message: write a name, and match on it inside";
            Err(syn::Error::new_spanned(pattern, text))
        }
    }
}

fn is_context(typed: &PatType) -> bool {
    last_segment(&typed.ty).is_some_and(|last| last.ident == "Context")
}

fn check_context(typed: &PatType, kind: Kind) -> syn::Result<()> {
    match (&*typed.ty, kind) {
        (Type::Reference(reference), Kind::Read) if reference.mutability.is_some() => {
            let text =
                "reads overlap and share their context: take `&Context<Self>`, or `&mut self`";
            Err(syn::Error::new_spanned(reference, text))
        }
        (Type::Reference(_), _) => Ok(()),
        (other, _) => {
            let text =
                "the context is lent: take `&mut Context<Self>`, or `&Context<Self>` to read";
            Err(syn::Error::new_spanned(other, text))
        }
    }
}

fn check_one_context(method: &ImplItemFn) -> syn::Result<()> {
    match parameters(&method.sig).filter(|typed| is_context(typed)).nth(1) {
        Some(second) => refuse_second(true, second, "context"),
        None => Ok(()),
    }
}

fn check_reply_slot(typed: &PatType, kind: Kind) -> syn::Result<()> {
    if kind != Kind::Delayed {
        let text = "only a `#[delayed]` method has a reply slot; to pass on that of another call, put it in a struct";
        return Err(syn::Error::new_spanned(&typed.ty, text));
    }
    match &*typed.ty {
        Type::Reference(reference) => {
            let text = "a reply slot is used once and owned: take `ReplyTo<Reply>`";
            Err(syn::Error::new_spanned(reference, text))
        }
        _ => Ok(()),
    }
}

fn refuse_second(twice: bool, typed: &PatType, what: &str) -> syn::Result<()> {
    if twice {
        Err(syn::Error::new(typed.span(), format!("this method has two parameters for its {what}")))
    } else {
        Ok(())
    }
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Reference(reference) => last_segment(&reference.elem),
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

fn only_type_argument(segment: &PathSegment) -> syn::Result<&Type> {
    if let PathArguments::AngleBracketed(generic) = &segment.arguments
        && let (1, Some(GenericArgument::Type(ty))) = (generic.args.len(), generic.args.first())
    {
        return Ok(ty);
    }
    let text = format!("`{}` needs its type here: `{}<…>`", segment.ident, segment.ident);
    Err(syn::Error::new_spanned(segment, text))
}

fn kept(attributes: &[Attribute], names: &[&str]) -> Vec<Attribute> {
    let is_kept = |attribute: &&Attribute| names.iter().any(|name| attribute.path().is_ident(name));
    attributes.iter().filter(is_kept).cloned().collect()
}
