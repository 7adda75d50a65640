//! Types that leave the method's signature: checked to be owned, and moved into another scope.
//!
//! A message outlives the call that sends it, so its types borrow nothing. Types written beside the
//! `impl` mean something else inside the messages module; `Relocation` rewrites exactly what would
//! change its meaning.

use quote::ToTokens;
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};
use syn::{
    ExprPath, Generics, Ident, Lifetime, ParenthesizedGenericArguments, Path, QSelf, Type,
    TypePath, TypeReference, visit,
};

/// Refuses a type that borrows or is not named, wherever in it that happens.
///
/// # Errors
/// The first borrow or `impl Trait`, with what to take instead.
pub(crate) fn check_owned(ty: &Type, what: &str) -> syn::Result<()> {
    let mut borrows = Borrows { what, found: None };
    borrows.visit_type(ty);
    borrows.found.map_or(Ok(()), Err)
}

struct Borrows<'a> {
    what: &'a str,
    found: Option<syn::Error>,
}

impl Borrows<'_> {
    fn refuse(&mut self, borrow: &dyn ToTokens, instead: &str) {
        let text = format!("{} are owned: {instead}", self.what);
        self.found.get_or_insert_with(|| syn::Error::new_spanned(borrow, text));
    }
}

impl<'ast> Visit<'ast> for Borrows<'_> {
    fn visit_type(&mut self, ty: &'ast Type) {
        match ty {
            Type::Reference(reference) if !is_static(reference) => {
                let instead = owned_form(&reference.elem);
                let written = ty.to_token_stream().to_string().replace("& ", "&");
                self.refuse(ty, &format!("take `{instead}` instead of `{written}`"));
            }
            Type::ImplTrait(_) => self
                .refuse(ty, "name a type (a `Box<dyn Trait>`, if need be) instead of `impl Trait`"),
            // What a function borrows when it is called, its address does not.
            Type::BareFn(_) => {}
            _ => visit::visit_type(self, ty),
        }
    }

    fn visit_parenthesized_generic_arguments(&mut self, _: &'ast ParenthesizedGenericArguments) {
        // `Box<dyn Fn(&str)>`: as for a function.
    }

    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if lifetime.ident != "static" {
            self.refuse(lifetime, &format!("nothing in them can borrow for `{lifetime}`"));
        }
    }
}

fn is_static(reference: &TypeReference) -> bool {
    reference.lifetime.as_ref().is_some_and(|lifetime| lifetime.ident == "static")
}

fn owned_form(borrowed: &Type) -> String {
    match borrowed {
        Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
        Type::Slice(slice) => format!("Vec<{}>", slice.elem.to_token_stream()),
        other => other.to_token_stream().to_string(),
    }
}

/// Rewrites types of the `impl` for another scope, so that they keep their meaning.
pub(crate) struct Relocation<'a> {
    /// What `Self` stands for.
    pub(crate) actor: &'a Type,
    /// Names that the messages module defines and that would hide those beside it; `None` beside
    /// the `impl`.
    pub(crate) hiding: Option<&'a [Ident]>,
}

impl Relocation<'_> {
    /// The type as it is written in the new scope.
    pub(crate) fn of(&mut self, ty: &Type) -> Type {
        let mut moved = ty.clone();
        self.visit_type_mut(&mut moved);
        moved
    }

    /// Parameters and their bounds as they are written in the new scope.
    pub(crate) fn of_generics(&mut self, generics: &Generics) -> Generics {
        let mut moved = generics.clone();
        self.visit_generics_mut(&mut moved);
        moved
    }

    /// `Self` and `Self::X` become the actor and `<Actor>::X`.
    fn name_actor(&self, qself: &mut Option<QSelf>, path: &mut Path) {
        if qself.is_some() || path.segments.first().is_none_or(|first| first.ident != "Self") {
            return;
        }
        let rest = path.segments.iter().skip(1).cloned();
        *path = Path { leading_colon: Some(Default::default()), segments: rest.collect() };
        *qself = Some(QSelf {
            lt_token: Default::default(),
            ty: Box::new(self.actor.clone()),
            position: 0,
            as_token: None,
            gt_token: Default::default(),
        });
    }
}

impl VisitMut for Relocation<'_> {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if matches!(ty, Type::Path(path) if path.qself.is_none() && path.path.is_ident("Self")) {
            *ty = self.actor.clone();
        }
        visit_mut::visit_type_mut(self, ty);
    }

    fn visit_type_path_mut(&mut self, path: &mut TypePath) {
        self.name_actor(&mut path.qself, &mut path.path);
        visit_mut::visit_type_path_mut(self, path);
    }

    fn visit_expr_path_mut(&mut self, path: &mut ExprPath) {
        self.name_actor(&mut path.qself, &mut path.path);
        visit_mut::visit_expr_path_mut(self, path);
    }

    fn visit_path_mut(&mut self, path: &mut Path) {
        visit_mut::visit_path_mut(self, path);
        let (Some(hiding), None) = (self.hiding, path.leading_colon) else { return };
        let Some(first) = path.segments.first_mut() else { return };
        let span = first.ident.span();
        if first.ident == "self" {
            first.ident = Ident::new("super", span);
        } else if first.ident == "super" || hiding.contains(&first.ident) {
            path.segments.insert(0, Ident::new("super", span).into());
        }
    }
}
