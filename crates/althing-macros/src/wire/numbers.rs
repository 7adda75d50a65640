//! `#[wire(3)]` on fields and variants: the numbers that stand for them in the bytes.
//!
//! A field without one is numbered one after the field before it. Numbers are the contract with
//! every other version of the program, so that a number given twice or out of protobuf's range is
//! refused.

use proc_macro2::Span;
use syn::{Attribute, LitInt, Path};

/// The largest field number of protobuf.
const FIELD_MAX: u32 = (1 << 29) - 1;
/// Numbers that protobuf keeps for itself.
const RESERVED: std::ops::RangeInclusive<u32> = 19_000..=19_999;
/// The largest number of an enum's value that is not negative.
const VALUE_MAX: u32 = i32::MAX.unsigned_abs();

/// Numbers what stands in a row.
pub(crate) struct Numbers {
    next: u32,
    taken: Vec<u32>,
    of_fields: bool,
}

impl Numbers {
    /// Of the fields of a message or the variants of a `oneof`: from 1.
    pub(crate) fn of_fields() -> Self {
        Self { next: 1, taken: Vec::new(), of_fields: true }
    }

    /// Of the values of an enum: from 0.
    pub(crate) fn of_values() -> Self {
        Self { next: 0, taken: Vec::new(), of_fields: false }
    }

    /// The number of the next one, given or by its place.
    ///
    /// # Errors
    /// A malformed, repeated or impossible number.
    pub(crate) fn next(&mut self, attributes: &[Attribute], span: Span) -> syn::Result<u32> {
        let mut given = None;
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("wire")) {
            let number: LitInt = attribute.parse_args().map_err(|error| {
                let text = "`#[wire(3)]` takes the number that stands for it in the bytes";
                syn::Error::new(error.span(), text)
            })?;
            if given.replace((number.base10_parse()?, number.span())).is_some() {
                return Err(syn::Error::new(number.span(), "this number is given twice"));
            }
        }
        let (number, span) = given.unwrap_or((self.next, span));
        self.check(number, span)?;
        self.taken.push(number);
        self.next = number.saturating_add(1);
        Ok(number)
    }

    fn check(&self, number: u32, span: Span) -> syn::Result<()> {
        let text = if self.taken.contains(&number) {
            format!("the number {number} is taken")
        } else if self.of_fields && !(1..=FIELD_MAX).contains(&number) {
            format!("fields are numbered from 1 to {FIELD_MAX}")
        } else if self.of_fields && RESERVED.contains(&number) {
            "protobuf keeps the field numbers from 19000 to 19999 for itself".to_owned()
        } else if number > VALUE_MAX {
            format!("values of an enum are numbered from 0 to {VALUE_MAX}")
        } else {
            return Ok(());
        };
        Err(syn::Error::new(span, text))
    }
}

/// Where the library is, as `#[wire(crate = path)]` on the type says.
///
/// # Errors
/// The type has another argument.
pub(crate) fn althing(attributes: &[Attribute]) -> syn::Result<Path> {
    let mut althing = syn::parse_quote!(::althing);
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("wire")) {
        let parsed = attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("no such argument"));
            }
            althing = meta.value()?.call(Path::parse_mod_style)?;
            Ok(())
        });
        parsed.map_err(|error| {
            syn::Error::new(error.span(), "`#[wire]` on a type takes `crate = path`")
        })?;
    }
    Ok(althing)
}
