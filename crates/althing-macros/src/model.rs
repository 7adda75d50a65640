//! What an attributed `impl` block says: its messages, events and hooks, checked before anything is
//! generated.
//!
//! Nothing here emits code. Every complaint is collected, so that one compilation shows them all.

use proc_macro2::{Span, TokenStream};
use quote::format_ident;
use syn::{Attribute, GenericParam, Generics, Ident, ImplItem, ItemImpl, Path, Type, Visibility};

use crate::attributes::{Guards, MethodAttributes, Wire};
use crate::method::{self, Role};

/// An actor as its `impl` block describes it.
pub(crate) struct Model {
    /// The type as written, parameters included.
    pub(crate) actor: Type,
    /// Its name alone.
    pub(crate) ident: Ident,
    /// The parameters of the `impl`.
    pub(crate) generics: Generics,
    /// The async methods that handle messages.
    pub(crate) messages: Vec<Message>,
    /// The methods that handle events of topics.
    pub(crate) events: Vec<Event>,
    /// The lifecycle hooks.
    pub(crate) hooks: Vec<Hook>,
}

/// A method that handles a message.
pub(crate) struct Message {
    /// The method's name.
    pub(crate) method: Ident,
    /// The message's name.
    pub(crate) ident: Ident,
    /// Which handler trait it implements.
    pub(crate) kind: Kind,
    /// The method's visibility.
    pub(crate) vis: Visibility,
    /// Its documentation, for the call.
    pub(crate) docs: Vec<Attribute>,
    /// Its `#[cfg]`s, for everything generated from it.
    pub(crate) cfgs: Vec<Attribute>,
    /// The message's fields, in the order of the parameters.
    pub(crate) fields: Vec<Field>,
    /// How the handler calls the method.
    pub(crate) arguments: Vec<Argument>,
    /// What an ask gets; `None` for nothing.
    pub(crate) reply: Option<Type>,
    /// What is asked first.
    pub(crate) guards: Guards,
    /// How it travels between nodes.
    pub(crate) wire: Wire,
    /// What it derives by itself.
    pub(crate) derives: Vec<Path>,
}

/// A field of a message.
pub(crate) struct Field {
    /// The parameter's name.
    pub(crate) ident: Ident,
    /// The parameter's type, as written beside the `impl`.
    pub(crate) ty: Type,
}

/// Which handler trait a message is handled by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `&mut self`
    Write,
    /// `&self`
    Read,
    /// `#[delayed]`
    Delayed,
}

impl Kind {
    /// The library's type for this way of reaching a handler.
    pub(crate) fn marker(self, span: Span) -> Ident {
        let name = match self {
            Self::Write => "Write",
            Self::Read => "Read",
            Self::Delayed => "Delayed",
        };
        Ident::new(name, span)
    }
}

/// What a handler passes to the user's method.
pub(crate) enum Argument {
    /// A field of the message.
    Field(Ident),
    /// The context.
    Context,
    /// The reply slot.
    Reply,
    /// The event, or what a hook is told.
    Subject,
}

/// A method that handles the events of topics.
pub(crate) struct Event {
    /// The method's name.
    pub(crate) method: Ident,
    /// Its `#[cfg]`s.
    pub(crate) cfgs: Vec<Attribute>,
    /// What the topic publishes.
    pub(crate) payload: Type,
    /// How the handler calls the method.
    pub(crate) arguments: Vec<Argument>,
}

/// A lifecycle hook.
pub(crate) struct Hook {
    /// The method's name, which is the hook's.
    pub(crate) method: Ident,
    /// Its `#[cfg]`s.
    pub(crate) cfgs: Vec<Attribute>,
    /// Which hook it is.
    pub(crate) shape: &'static HookShape,
    /// How the hook calls the method.
    pub(crate) arguments: Vec<Argument>,
}

/// The signature of a hook in the `Actor` trait.
pub(crate) struct HookShape {
    /// Its name.
    pub(crate) name: &'static str,
    /// The parameter beside the context, and its type.
    pub(crate) subject: Option<(&'static str, &'static str)>,
    /// Whether it may fail, with `ActorError`.
    pub(crate) fallible: bool,
}

impl Model {
    /// Reads an `impl` block and takes our attributes off its methods; notes everything that cannot
    /// be an actor's. A method complained about is left out, the others stand.
    ///
    /// # Errors
    /// The block cannot be an actor's at all.
    pub(crate) fn take(item: &mut ItemImpl, complaints: &mut Complaints) -> syn::Result<Self> {
        let ident = check_impl(item);
        let mut model = Self {
            actor: (*item.self_ty).clone(),
            ident: ident.as_ref().map_or_else(|_| format_ident!("Actor"), Clone::clone),
            generics: item.generics.clone(),
            messages: Vec::new(),
            events: Vec::new(),
            hooks: Vec::new(),
        };
        for item in &mut item.items {
            let ImplItem::Fn(method) = item else { continue };
            let role = MethodAttributes::take(&mut method.attrs)
                .and_then(|attributes| method::role(method, attributes));
            match complaints.note(role) {
                Some(Role::Message(message)) => {
                    if complaints.note(model.check_unique(&message)).is_some() {
                        model.messages.push(message);
                    }
                }
                Some(Role::Event(event)) => model.events.push(event),
                Some(Role::Hook(hook)) => model.hooks.push(hook),
                Some(Role::Ordinary) | None => {}
            }
        }
        ident.map(|_| model)
    }

    /// `add_2` and `add2` are two methods but one message; the same method under two `#[cfg]`s is
    /// fine.
    fn check_unique(&self, message: &Message) -> syn::Result<()> {
        let same =
            |other: &&Message| other.ident == message.ident && other.method != message.method;
        self.messages.iter().find(same).map_or(Ok(()), |other| {
            let text = format!(
                "this method's message is `{}`, like that of `{}`",
                message.ident, other.method
            );
            Err(syn::Error::new(message.method.span(), text))
        })
    }
}

/// Returns the type's name if the block can be an actor's.
fn check_impl(item: &ItemImpl) -> syn::Result<Ident> {
    if let Some((_, trait_, _)) = &item.trait_ {
        let text = "`#[actor]` goes on an inherent `impl`, not on that of a trait";
        return Err(syn::Error::new_spanned(trait_, text));
    }
    if let Some(param) =
        item.generics.params.iter().find(|p| matches!(p, GenericParam::Lifetime(_)))
    {
        return Err(syn::Error::new_spanned(param, "an actor owns its state: it has no lifetimes"));
    }
    match &*item.self_ty {
        Type::Path(path) if path.qself.is_none() => {
            Ok(path.path.segments.last().expect("a path has a segment").ident.clone())
        }
        other => {
            Err(syn::Error::new_spanned(other, "an actor is a struct or an enum, by its name"))
        }
    }
}

/// Errors found so far; all of them reach the user.
#[derive(Default)]
pub(crate) struct Complaints(Option<syn::Error>);

impl Complaints {
    /// Keeps the error, if it is one.
    pub(crate) fn note<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        match (result, &mut self.0) {
            (Ok(value), _) => return Some(value),
            (Err(error), Some(first)) => first.combine(error),
            (Err(error), none) => *none = Some(error),
        }
        None
    }

    /// What the compiler is told.
    pub(crate) fn into_compile_errors(self) -> Option<TokenStream> {
        self.0.map(syn::Error::into_compile_error)
    }
}
