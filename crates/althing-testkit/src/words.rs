//! Types and actors in the words of a reader: without module paths.

/// The last part of each path in a type's name: `althing::Published<alloc::string::String>` is
/// `Published<String>`.
pub(crate) fn short_type(full: &str) -> String {
    let mut short = String::with_capacity(full.len());
    let mut word_at = 0;
    for (at, letter) in full.char_indices() {
        if letter.is_alphanumeric() || letter == '_' {
            continue;
        }
        if letter == ':' {
            // What stood before was a module.
            word_at = at + 1;
            continue;
        }
        short.push_str(&full[word_at..at]);
        short.push(letter);
        word_at = at + letter.len_utf8();
    }
    short.push_str(&full[word_at..]);
    short
}

#[cfg(test)]
mod tests {
    use super::short_type;

    #[test]
    fn a_type_is_named_without_its_modules() {
        assert_eq!(short_type("u32"), "u32");
        assert_eq!(short_type("shop::cart::Add"), "Add");
        assert_eq!(short_type("a::Published<alloc::string::String>"), "Published<String>");
        assert_eq!(short_type("(a::B, &[c::D; 3])"), "(B, &[D; 3])");
    }
}
