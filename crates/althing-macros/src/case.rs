//! Names made from names: `add_item` becomes `AddItem`, `HttpRoom` becomes `http_room`.
//!
//! Only ASCII underscores and case boundaries matter; everything else is carried over as written.

use proc_macro2::Span;
use syn::Ident;

/// Names a method's message: `add_item` gives `AddItem`, keeping the method's span.
///
/// # Errors
/// Refuses names that leave nothing usable, such as `_` or `self_`.
pub(crate) fn message_ident(method: &Ident) -> syn::Result<Ident> {
    let name = camel(&unraw(method));
    if syn::parse_str::<Ident>(&name).is_err() {
        let text = format!("`{method}` cannot name a message: `{name}` is not an identifier");
        return Err(syn::Error::new(method.span(), text));
    }
    Ok(Ident::new(&name, method.span()))
}

/// Names the module of an actor's messages: `Cart` gives `cart_messages`.
pub(crate) fn messages_module(actor: &Ident) -> Ident {
    Ident::new(&format!("{}_messages", snake(&unraw(actor))), Span::call_site())
}

/// Names the extension trait of an actor's calls: `Cart` gives `CartCalls`.
pub(crate) fn calls_trait(actor: &Ident) -> Ident {
    Ident::new(&format!("{}Calls", unraw(actor)), Span::call_site())
}

/// The identifier's text without `r#`.
pub(crate) fn unraw(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

fn camel(snake: &str) -> String {
    let words = snake.split('_').filter(|word| !word.is_empty());
    words
        .flat_map(|word| {
            let mut letters = word.chars();
            let first = letters.next().into_iter().flat_map(char::to_uppercase);
            first.chain(letters).collect::<Vec<_>>()
        })
        .collect()
}

fn snake(camel: &str) -> String {
    let letters: Vec<char> = camel.chars().collect();
    let mut snake = String::new();
    for (index, &letter) in letters.iter().enumerate() {
        let after_lower = index > 0 && !letters[index - 1].is_uppercase();
        let before_lower = letters.get(index + 1).is_some_and(|next| next.is_lowercase());
        let starts_word = letter.is_uppercase() && index > 0 && (after_lower || before_lower);
        if starts_word && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ident(text: &str) -> Ident {
        syn::parse_str(text).expect("an identifier")
    }

    #[test]
    fn methods_name_messages_in_camel_case() {
        for (method, message) in
            [("add", "Add"), ("add_item", "AddItem"), ("_at_2", "At2"), ("r#move", "Move")]
        {
            assert_eq!(message_ident(&ident(method)).expect("a name").to_string(), message);
        }
    }

    #[test]
    fn names_that_leave_no_identifier_are_refused() {
        for method in ["__", "self_", "_2"] {
            assert!(message_ident(&ident(method)).is_err(), "{method}");
        }
    }

    #[test]
    fn acronyms_stay_one_word_in_the_module_name() {
        for (actor, module) in [
            ("Cart", "cart_messages"),
            ("ChatRoom", "chat_room_messages"),
            ("HTTPRoom", "http_room_messages"),
            ("Room2", "room2_messages"),
        ] {
            assert_eq!(messages_module(&ident(actor)).to_string(), module);
        }
    }
}
