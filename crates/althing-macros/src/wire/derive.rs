//! `#[derive(Wire)]`: structs, enums without payloads and enums with some.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{
    Data, DataEnum, DeriveInput, Expr, ExprLit, Fields, Generics, Lit, Member, Path, Variant,
};

use super::encoding::{self, Field};
use super::numbers::{self, Numbers};

/// Expands the derive, or into what is wrong with the type.
pub(crate) fn derive(item: TokenStream) -> TokenStream {
    syn::parse2(item)
        .and_then(|input| expand(&input))
        .unwrap_or_else(syn::Error::into_compile_error)
}

fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let althing = &numbers::althing(&input.attrs)?;
    let (wire, field) = match &input.data {
        Data::Struct(data) => {
            let fields = numbered(&data.fields)?;
            (encoding::of_struct(althing, &fields), TokenStream::new())
        }
        Data::Enum(data) if data.variants.is_empty() => {
            let text = "an enum without variants has no values to encode";
            return Err(syn::Error::new_spanned(&input.ident, text));
        }
        Data::Enum(data) if data.variants.iter().all(|it| matches!(it.fields, Fields::Unit)) => {
            plain_enum(althing, data)?
        }
        Data::Enum(data) => (one_of(althing, data)?, TokenStream::new()),
        Data::Union(data) => {
            let text = "nobody can tell which field of a union holds: make it an enum";
            return Err(syn::Error::new_spanned(data.union_token, text));
        }
    };
    let (ident, generics) = (&input.ident, bounded(&input.generics, althing));
    let (parameters, names, bounds) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #althing::Wire for #ident #names #bounds { #wire }
        #[automatically_derived]
        impl #parameters #althing::wire::WireField for #ident #names #bounds { #field }
    })
}

/// A generic type travels if its parameters do.
fn bounded(generics: &Generics, althing: &Path) -> Generics {
    let mut bounded = generics.clone();
    for parameter in bounded.type_params_mut() {
        parameter.bounds.push(syn::parse_quote!(#althing::wire::WireField));
    }
    bounded
}

fn numbered(fields: &Fields) -> syn::Result<Vec<Field>> {
    let mut numbers = Numbers::of_fields();
    let fields = fields.iter().enumerate().map(|(place, field)| {
        let number = numbers.next(&field.attrs, field.span())?;
        let member = field.ident.clone().map_or_else(|| Member::from(place), Member::from);
        Ok(Field { number, member, ty: field.ty.clone() })
    });
    fields.collect()
}

/// A number on the wire, as its own message the field 1.
fn plain_enum(althing: &Path, data: &DataEnum) -> syn::Result<(TokenStream, TokenStream)> {
    let mut numbers = Numbers::of_values();
    let (mut to_number, mut from_number) = (Vec::new(), Vec::new());
    for variant in &data.variants {
        check_discriminant(variant)?;
        let number = numbers.next(&variant.attrs, variant.ident.span())?;
        let ident = &variant.ident;
        to_number.push(quote! { Self::#ident => #number, });
        from_number.push(quote! { #number => ::core::result::Result::Ok(Self::#ident), });
    }
    let result = quote! { ::core::result::Result<Self, #althing::WireError> };
    let number_of = |value: TokenStream| quote! { match #value { #(#to_number)* } };
    let of_number = quote! {
        match number {
            #(#from_number)*
            _ => ::core::result::Result::Err(#althing::WireError::new(::std::format!(
                "no variant has the number {number}"
            ))),
        }
    };
    let (of_self, of_item) = (number_of(quote! { self }), number_of(quote! { item }));
    let number = quote! { <u32 as #althing::wire::WireField> };
    let wire = quote! {
        fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
            <u32 as #althing::Wire>::encode(&#of_self, out);
        }

        fn decode_within(bytes: &[u8], depth: #althing::wire::Depth) -> #result {
            let number = <u32 as #althing::Wire>::decode_within(bytes, depth)?;
            #of_number
        }
    };
    let field = quote! {
        fn encode_field(&self, number: u32, out: &mut ::std::vec::Vec<u8>) {
            #number::encode_field(&#of_self, number, out);
        }

        fn encode_single(&self, number: u32, out: &mut ::std::vec::Vec<u8>) {
            #number::encode_single(&#of_self, number, out);
        }

        fn decode_single(value: #althing::wire::Value<'_>) -> #result {
            let number = #number::decode_single(value)?;
            #of_number
        }

        fn absent(_: #althing::wire::Depth) -> #result {
            let number = 0_u32;
            #of_number
        }

        fn encode_repeated(items: &[Self], number: u32, out: &mut ::std::vec::Vec<u8>) {
            let numbers: ::std::vec::Vec<u32> = items.iter().map(|item| #of_item).collect();
            #number::encode_repeated(&numbers, number, out);
        }

        fn merge_repeated(
            items: &mut ::std::vec::Vec<Self>,
            value: #althing::wire::Value<'_>,
        ) -> ::core::result::Result<(), #althing::WireError> {
            let mut numbers = ::std::vec::Vec::new();
            #number::merge_repeated(&mut numbers, value)?;
            for number in numbers {
                items.push(#of_number?);
            }
            ::core::result::Result::Ok(())
        }
    };
    Ok((wire, field))
}

/// Rust's own number of a variant would look like the number on the wire, and would not be it.
fn check_discriminant(variant: &Variant) -> syn::Result<()> {
    match &variant.discriminant {
        Some((_, Expr::Lit(ExprLit { lit: Lit::Int(number), .. }))) => {
            let text = format!("say `#[wire({number})]` for its number in the bytes");
            let is_said = variant.attrs.iter().any(|attribute| attribute.path().is_ident("wire"));
            if is_said { Ok(()) } else { Err(syn::Error::new_spanned(number, text)) }
        }
        _ => Ok(()),
    }
}

/// A message with one field of many: a variant with one payload is that payload, others are
/// messages of their fields.
fn one_of(althing: &Path, data: &DataEnum) -> syn::Result<TokenStream> {
    let mut numbers = Numbers::of_fields();
    let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
    for variant in &data.variants {
        let number = numbers.next(&variant.attrs, variant.ident.span())?;
        let (encode, decode) = arm(althing, variant, number)?;
        encoded.push(encode);
        decoded.push(decode);
    }
    Ok(quote! {
        fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
            match self { #(#encoded)* }
        }

        fn decode_within(
            bytes: &[u8],
            depth: #althing::wire::Depth,
        ) -> ::core::result::Result<Self, #althing::WireError> {
            let mut read = ::core::option::Option::None;
            let mut fields = #althing::wire::Fields::new(bytes, depth);
            while let ::core::option::Option::Some(value) = fields.next_field()? {
                match value.number() {
                    #(#decoded)*
                    _ => {}
                }
            }
            read.ok_or_else(|| #althing::WireError::new("none of the known variants"))
        }
    })
}

fn arm(althing: &Path, variant: &Variant, number: u32) -> syn::Result<(TokenStream, TokenStream)> {
    let ident = &variant.ident;
    let fields = numbered(&variant.fields)?;
    let name = crate::case::unraw(ident);
    if let (Fields::Unnamed(_), [payload]) = (&variant.fields, fields.as_slice()) {
        let encode_single = payload.call(althing, "encode_single");
        let decode_single = payload.call(althing, "decode_single");
        return Ok((
            quote! { Self::#ident(payload) => #encode_single(payload, #number, out), },
            quote! {
                #number => {
                    let payload = #decode_single(value).map_err(|error| error.inside(#name))?;
                    read = ::core::option::Option::Some(Self::#ident(payload));
                }
            },
        ));
    }
    let bindings = fields.iter().map(|field| {
        let (member, binding) = (&field.member, field.binding());
        quote! { #member: #binding }
    });
    let written = fields.iter().map(|field| encoding::encode(althing, field, &field.binding()));
    let out = if fields.is_empty() {
        quote! { _ }
    } else {
        quote! { out }
    };
    let decoded = encoding::decode(althing, &quote! { Self::#ident }, &fields);
    Ok((
        quote! {
            Self::#ident { #(#bindings),* } => {
                #althing::wire::put_nested(#number, out, |#out: &mut ::std::vec::Vec<u8>| { #(#written)* });
            }
        },
        quote! {
            #number => {
                let decode = || -> ::core::result::Result<Self, #althing::WireError> {
                    let (bytes, depth) = value.nested()?;
                    #decoded
                };
                read = ::core::option::Option::Some(decode().map_err(|error| error.inside(#name))?);
            }
        },
    ))
}
