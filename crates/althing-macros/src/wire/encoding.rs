//! The two methods of a `Wire` impl for a message with fields.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Member, Path, Type};

/// One field of a message.
pub(crate) struct Field {
    /// Its number on the wire.
    pub(crate) number: u32,
    /// How the struct calls it.
    pub(crate) member: Member,
    /// Its type, as written where the impl stands.
    pub(crate) ty: Type,
}

impl Field {
    /// What errors call it.
    fn name(&self) -> String {
        match &self.member {
            Member::Named(name) => crate::case::unraw(name),
            Member::Unnamed(place) => place.index.to_string(),
        }
    }

    /// What it is bound to, in a pattern and while it is read.
    pub(crate) fn binding(&self) -> Ident {
        format_ident!("field_{}", self.number)
    }

    /// Calls a function of `WireField` for the field's type, at the place of that type.
    pub(crate) fn call(&self, althing: &Path, function: &str) -> TokenStream {
        let (ty, function) = (&self.ty, Ident::new(function, self.ty.span()));
        quote_spanned! {ty.span()=> <#ty as #althing::wire::WireField>::#function }
    }
}

/// The impl's body for a struct.
pub(crate) fn of_struct(althing: &Path, fields: &[Field]) -> TokenStream {
    let out = if fields.is_empty() {
        quote! { _out }
    } else {
        quote! { out }
    };
    let encoded = fields.iter().map(|field| {
        let member = &field.member;
        encode(althing, field, &quote! { &self.#member })
    });
    let decoded = decode(althing, &quote! { Self }, fields);
    quote! {
        fn encode(&self, #out: &mut ::std::vec::Vec<u8>) {
            #(#encoded)*
        }

        fn decode_within(
            bytes: &[u8],
            depth: #althing::wire::Depth,
        ) -> ::core::result::Result<Self, #althing::WireError> {
            #decoded
        }
    }
}

/// Appends a field to `out`.
pub(crate) fn encode(althing: &Path, field: &Field, value: &dyn ToTokens) -> TokenStream {
    let (encode_field, number) = (field.call(althing, "encode_field"), field.number);
    quote! { #encode_field(#value, #number, out); }
}

/// Reads `bytes`, which stand `depth` deep, into what `path` constructs; ends with an `Ok` of it.
pub(crate) fn decode(althing: &Path, path: &TokenStream, fields: &[Field]) -> TokenStream {
    if fields.is_empty() {
        return quote! {
            <() as #althing::Wire>::decode_within(bytes, depth)?;
            ::core::result::Result::Ok(#path {})
        };
    }
    let (mut slots, mut arms, mut members) = (Vec::new(), Vec::new(), Vec::new());
    for field in fields {
        let Field { number, member, ty } = field;
        let (slot, name) = (field.binding(), field.name());
        slots.push(quote! { let mut #slot = ::core::option::Option::None::<#ty>; });
        arms.push(quote! { #number => #althing::wire::merge(&mut #slot, value, #name)?, });
        members.push(quote! { #member: #althing::wire::finish(#slot, depth, #name)?, });
    }
    quote! {
        #(#slots)*
        let mut fields = #althing::wire::Fields::new(bytes, depth);
        while let ::core::option::Option::Some(value) = fields.next_field()? {
            match value.number() {
                #(#arms)*
                _ => {}
            }
        }
        ::core::result::Result::Ok(#path { #(#members)* })
    }
}
