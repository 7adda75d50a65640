//! Channel names as Centrifugo's documentation gives them: `namespace:rest`, with `#` before the ids
//! of the only users who may subscribe, and `$` first in what needs a token.

/// The longest name, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// The part that names the namespace; `None`: the channel is in none.
pub(crate) fn namespace(channel: &str) -> Option<&str> {
    let name = channel.strip_prefix('$').unwrap_or(channel);
    name.split_once(':').map(|(namespace, _)| namespace)
}

/// Whether a channel can be in a namespace of this name.
pub(crate) fn is_namespace(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('$') && !name.contains([':', '#'])
}

/// Whether only a subscription token opens it.
pub(crate) fn is_private(channel: &str) -> bool {
    channel.starts_with('$')
}

/// The users that a name is limited to: `None` if it is not limited to any.
pub(crate) fn users(channel: &str) -> Option<impl Iterator<Item = &str>> {
    channel.split_once('#').map(|(_, users)| users.split(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_namespace_and_its_users() {
        assert_eq!(namespace("chat:index"), Some("chat"));
        assert_eq!(namespace("$chat:index"), Some("chat"));
        assert_eq!(namespace("index"), None);
        assert_eq!(users("dialog#42,43").unwrap().collect::<Vec<_>>(), ["42", "43"]);
        assert!(users("dialog").is_none());
    }
}
