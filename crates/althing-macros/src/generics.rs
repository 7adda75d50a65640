//! Which of the actor's generic parameters a message carries: those that its fields name, and no
//! others.
//!
//! A parameter that no field names would need a `PhantomData` that every sender had to write.

use quote::ToTokens;
use syn::visit::Visit;
use syn::{GenericParam, Generics, Ident, Path, Type, TypeParamBound, WherePredicate, visit};

/// Picks the parameters and the bounds that the fields of a message need.
///
/// # Errors
/// A field that needs a bound naming a parameter which no field names.
pub(crate) fn used_by(fields: &[&Type], actor: &Generics, method: &Ident) -> syn::Result<Generics> {
    let declared: Vec<Ident> = actor.params.iter().map(name_of).collect();
    let mut mentions = Mentions::of(&declared);
    fields.iter().for_each(|ty| mentions.visit_type(ty));
    let foreign: Vec<Ident> =
        declared.iter().filter(|name| !mentions.found.contains(name)).cloned().collect();
    let mut used = Generics::default();
    for param in &actor.params {
        if mentions.found.contains(&name_of(param)) {
            used.params.push(
                without_foreign_bounds(param, &foreign, &mentions.projected)
                    .map_err(|text| syn::Error::new(method.span(), text))?,
            );
        }
    }
    let predicates = actor.where_clause.iter().flat_map(|clause| &clause.predicates);
    let kept: Vec<WherePredicate> = predicates
        .filter(|predicate| {
            let in_predicate = |names| {
                let mut mentions = Mentions::of(names);
                mentions.visit_where_predicate(predicate);
                !mentions.found.is_empty()
            };
            in_predicate(&mentions.found) && !in_predicate(&foreign)
        })
        .cloned()
        .collect();
    if !kept.is_empty() {
        used.make_where_clause().predicates.extend(kept);
    }
    Ok(used)
}

/// Whether a type names one of the parameters.
pub(crate) fn is_generic(ty: &Type, parameters: &Generics) -> bool {
    let declared: Vec<Ident> = parameters.params.iter().map(name_of).collect();
    let mut mentions = Mentions::of(&declared);
    mentions.visit_type(ty);
    !mentions.found.is_empty()
}

fn without_foreign_bounds(
    param: &GenericParam,
    foreign: &[Ident],
    projected: &[Ident],
) -> Result<GenericParam, String> {
    let mut param = param.clone();
    let GenericParam::Type(typed) = &mut param else { return Ok(param) };
    typed.default = None;
    let is_foreign = |bound: &TypeParamBound| {
        let mut mentions = Mentions::of(foreign);
        mentions.visit_type_param_bound(bound);
        mentions.found.first().cloned()
    };
    if projected.contains(&typed.ident)
        && let Some(missing) = typed.bounds.iter().find_map(is_foreign)
    {
        return Err(format!(
            "a message carries only the parameters that its fields name: this one needs a bound of `{}` that names \
             `{missing}`, and no field does; add an argument that names `{missing}`, or send the projected type \
             under a parameter of its own",
            typed.ident
        ));
    }
    typed.bounds =
        std::mem::take(&mut typed.bounds).into_iter().filter(|b| is_foreign(b).is_none()).collect();
    if typed.bounds.is_empty() {
        typed.colon_token = None;
    }
    Ok(param)
}

fn name_of(param: &GenericParam) -> Ident {
    match param {
        GenericParam::Type(param) => param.ident.clone(),
        GenericParam::Const(param) => param.ident.clone(),
        GenericParam::Lifetime(param) => param.lifetime.ident.clone(),
    }
}

/// Which of `names` a type or bound mentions, and which of them by a projection such as `S::Item`.
struct Mentions<'a> {
    names: &'a [Ident],
    found: Vec<Ident>,
    projected: Vec<Ident>,
}

impl<'a> Mentions<'a> {
    fn of(names: &'a [Ident]) -> Self {
        Self { names, found: Vec::new(), projected: Vec::new() }
    }
}

impl<'ast> Visit<'ast> for Mentions<'_> {
    fn visit_path(&mut self, path: &'ast Path) {
        if let (None, Some(first)) = (path.leading_colon, path.segments.first())
            && self.names.contains(&first.ident)
        {
            self.found.push(first.ident.clone());
            if path.segments.len() > 1 {
                self.projected.push(first.ident.clone());
            }
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        for token in mac.tokens.to_token_stream() {
            if let proc_macro2::TokenTree::Ident(ident) = token
                && self.names.contains(&ident)
            {
                self.found.push(ident);
            }
        }
    }
}
