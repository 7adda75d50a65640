//! Rules of single fields, as pure functions. Each error names the field and the rule or limit it
//! breaks; lengths are characters unless the limit's name says bytes.

use serde::{Deserialize, Deserializer};

use crate::id::UnixMillis;
use crate::limits;
use crate::rpc::RpcError;

/// Implemented by requests: the rules that types cannot express.
pub trait Checked {
    /// Checks every field that has a rule.
    ///
    /// # Errors
    /// The first field that breaks its rule.
    fn check(&self) -> Result<(), RpcError> {
        Ok(())
    }
}

/// Reads a field that may be absent: many clients write `null` for what they do not have.
///
/// # Errors
/// It is neither `null` nor of its type.
pub fn null_as_absent<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Checks a field only when it is there.
pub fn optional<T>(
    value: &Option<T>,
    rule: impl FnOnce(&T) -> Result<(), RpcError>,
) -> Result<(), RpcError> {
    value.as_ref().map_or(Ok(()), rule)
}

/// Checks a length in characters, both ends included.
pub fn chars(field: &'static str, text: &str, min: usize, max: usize) -> Result<(), RpcError> {
    // Counting stops early: a megabyte need not be walked to know that it is too long.
    let count = text.chars().take(max + 1).count();
    if count > max {
        return Err(RpcError::too_large(field, max, "characters"));
    }
    if count < min {
        return Err(RpcError::invalid(field, format!("must have at least {min} characters")));
    }
    Ok(())
}

fn count(field: &'static str, count: usize, max: usize) -> Result<(), RpcError> {
    if count > max { Err(RpcError::too_large(field, max, "entries")) } else { Ok(()) }
}

/// Neither control characters nor those that turn the direction of what stands behind them: a name
/// is shown in the sentences of others.
fn no_controls(field: &'static str, text: &str) -> Result<(), RpcError> {
    let is_turning = |char| matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    match text.chars().any(|char| char.is_control() || is_turning(char)) {
        true => Err(RpcError::invalid(field, "must not contain control characters")),
        false => Ok(()),
    }
}

/// Nothing hidden, and something to see: with characters that are not shown, one name looks like
/// another one, or like none.
fn seen(field: &'static str, text: &str) -> Result<(), RpcError> {
    if text.chars().any(is_hidden) {
        return Err(RpcError::invalid(field, "must not contain characters that are not shown"));
    }
    match text.chars().all(|char| char.is_whitespace() || is_joining(char)) {
        true => Err(RpcError::invalid(field, "must have something to see")),
        false => Ok(()),
    }
}

/// Characters without a look of their own that no name needs: spaces without a width, fillers, hints
/// for hyphens, and breaks of lines.
fn is_hidden(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'
        | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}')
}

/// Characters that scripts and emoji need between others, and that show nothing alone.
fn is_joining(char: char) -> bool {
    matches!(char,
        '\u{61c}' | '\u{200c}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0000}'..='\u{e01ef}')
}

fn title(field: &'static str, text: &str, max: usize) -> Result<(), RpcError> {
    chars(field, text, 1, max)?;
    no_controls(field, text)?;
    seen(field, text)?;
    if text.trim().len() != text.len() {
        return Err(RpcError::invalid(field, "must not begin or end with white space"));
    }
    Ok(())
}

/// Names that stand for somebody else where people write them: `@everyone` and `from:me`.
const TAKEN: [&str; 2] = ["everyone", "me"];

/// Account name: `[a-z0-9_.-]`, so that it can be mentioned and typed anywhere.
pub fn name(field: &'static str, text: &str) -> Result<(), RpcError> {
    chars(field, text, limits::NAME_CHARS_MIN, limits::NAME_CHARS_MAX)?;
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-".contains(&byte);
    if !text.bytes().all(allowed) {
        return Err(RpcError::invalid(field, "may only contain a-z, 0-9, `_`, `.` and `-`"));
    }
    if TAKEN.contains(&text) {
        return Err(RpcError::invalid(field, "is a word with a meaning of its own"));
    }
    Ok(())
}

/// Display name of a user.
pub fn display_name(field: &'static str, text: &str) -> Result<(), RpcError> {
    title(field, text, limits::DISPLAY_NAME_CHARS_MAX)
}

/// Emoji of a status; may be empty.
pub fn status_emoji(field: &'static str, text: &str) -> Result<(), RpcError> {
    if text.is_empty() { Ok(()) } else { emoji(field, text) }
}

/// Words of a status; may be empty.
pub fn status_text(field: &'static str, text: &str) -> Result<(), RpcError> {
    if text.is_empty() { Ok(()) } else { title(field, text, limits::STATUS_CHARS_MAX) }
}

/// Name of a room.
pub fn room_name(field: &'static str, text: &str) -> Result<(), RpcError> {
    title(field, text, limits::ROOM_NAME_CHARS_MAX)
}

/// Name of a server.
pub fn server_name(field: &'static str, text: &str) -> Result<(), RpcError> {
    title(field, text, limits::SERVER_NAME_CHARS_MAX)
}

/// Hue of a colour, in degrees.
pub fn hue(field: &'static str, degrees: u16) -> Result<(), RpcError> {
    between(field, degrees.into(), 0, limits::HUE_MAX)
}

/// Topic of a room; may be empty.
pub fn topic(field: &'static str, text: &str) -> Result<(), RpcError> {
    chars(field, text, 0, limits::TOPIC_CHARS_MAX)?;
    no_controls(field, text)
}

/// Label of a device.
pub fn device_label(field: &'static str, text: &str) -> Result<(), RpcError> {
    title(field, text, limits::DEVICE_LABEL_CHARS_MAX)
}

/// Password of a new account.
pub fn password(field: &'static str, text: &str) -> Result<(), RpcError> {
    chars(field, text, limits::PASSWORD_CHARS_MIN, limits::PASSWORD_CHARS_MAX)
}

/// Text of a message; may be blank only beside attachments.
pub fn body(field: &'static str, text: &str, attachments: usize) -> Result<(), RpcError> {
    if text.len() > limits::BODY_BYTES_MAX {
        return Err(RpcError::too_large(field, limits::BODY_BYTES_MAX, "bytes"));
    }
    chars(field, text, 0, limits::BODY_CHARS_MAX)?;
    if text.contains('\0') {
        return Err(RpcError::invalid(field, "must not contain U+0000"));
    }
    if attachments == 0 && text.trim().is_empty() {
        return Err(RpcError::invalid(field, "must not be blank"));
    }
    Ok(())
}

/// Attachments of a message, each named once.
pub fn attachments<T: PartialEq>(field: &'static str, list: &[T]) -> Result<(), RpcError> {
    count(field, list.len(), limits::ATTACHMENTS_MAX)?;
    match (1..list.len()).any(|index| list[..index].contains(&list[index])) {
        true => Err(RpcError::invalid(field, "names a file twice")),
        false => Ok(()),
    }
}

/// Rooms named in a `sync`.
pub fn sync_rooms(field: &'static str, rooms: usize) -> Result<(), RpcError> {
    count(field, rooms, limits::SYNC_ROOMS_MAX)
}

/// Users named in a `presence.watch`.
pub fn watched(field: &'static str, users: usize) -> Result<(), RpcError> {
    count(field, users, limits::WATCHED_USERS_MAX)
}

/// Idempotency key.
pub fn key(field: &'static str, text: &str) -> Result<(), RpcError> {
    chars(field, text, 1, limits::KEY_CHARS_MAX)?;
    no_controls(field, text)
}

/// Emoji of a reaction: no white space, so that it is one thing to look at.
pub fn emoji(field: &'static str, text: &str) -> Result<(), RpcError> {
    if text.len() > limits::EMOJI_BYTES_MAX {
        return Err(RpcError::too_large(field, limits::EMOJI_BYTES_MAX, "bytes"));
    }
    if text.is_empty() || text.chars().any(char::is_whitespace) {
        return Err(RpcError::invalid(field, "must be one emoji"));
    }
    no_controls(field, text)?;
    seen(field, text)
}

/// A moment that every client can show.
pub fn moment(field: &'static str, at: UnixMillis) -> Result<(), RpcError> {
    let max = limits::MOMENT_MS_MAX;
    if at.as_u64() <= max {
        return Ok(());
    }
    let rule = format!("must be at most {max} milliseconds since 1970");
    Err(RpcError { limit: Some(max), ..RpcError::invalid(field, rule) })
}

/// Code of an invite.
pub fn invite_code(field: &'static str, text: &str) -> Result<(), RpcError> {
    chars(field, text, 1, limits::INVITE_CODE_CHARS_MAX)
}

/// Prefix by which users are found.
pub fn prefix(field: &'static str, text: &str) -> Result<(), RpcError> {
    chars(field, text, 1, limits::DISPLAY_NAME_CHARS_MAX)
}

/// Search query.
pub fn query(field: &'static str, text: &str) -> Result<(), RpcError> {
    chars(field, text, 1, limits::QUERY_CHARS_MAX)
}

/// A number between `min` and `max`, both included.
pub fn between(field: &'static str, value: u32, min: u32, max: u32) -> Result<(), RpcError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let limit = Some(u64::from(max));
    let rule = format!("must be between {min} and {max}");
    Err(RpcError { limit, ..RpcError::invalid(field, rule) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::ErrorCode;

    fn refusal(result: Result<(), RpcError>) -> (ErrorCode, String) {
        let error = result.expect_err("the rule must refuse this");
        (error.code, error.message)
    }

    #[test]
    fn names_keep_to_their_alphabet_and_length() {
        assert!(name("name", "ada.l_0-9").is_ok());
        for bad in ["Ada", "a b", "å!", "a@b", "everyone", "me"] {
            assert_eq!(refusal(name("name", bad)).0, ErrorCode::InvalidField, "{bad:?}");
        }
        assert!(refusal(name("name", "a")).1.contains("at least 2"));
        let long = "a".repeat(limits::NAME_CHARS_MAX + 1);
        assert_eq!(
            refusal(name("name", &long)),
            (ErrorCode::TooLarge, "name is over the limit of 32 characters".into())
        );
    }

    #[test]
    fn a_body_is_limited_in_characters_and_in_bytes() {
        assert!(body("body", &"é".repeat(limits::BODY_CHARS_MAX), 0).is_ok());
        assert!(
            refusal(body("body", &"e".repeat(limits::BODY_CHARS_MAX + 1), 0))
                .1
                .contains("8000 characters")
        );
        let bytes = "e".repeat(limits::BODY_BYTES_MAX + 1);
        assert!(refusal(body("body", &bytes, 0)).1.contains("32768 bytes"));
        assert!(refusal(body("body", "a\0", 0)).1.contains("U+0000"));
    }

    #[test]
    fn a_blank_body_needs_an_attachment() {
        assert!(refusal(body("body", " \n", 0)).1.contains("blank"));
        assert!(body("body", "", 1).is_ok());
    }

    #[test]
    fn titles_have_no_edges_of_white_space_and_no_controls() {
        assert!(room_name("name", "Tea & talk ☕").is_ok());
        assert!(refusal(room_name("name", " tea")).1.contains("white space"));
        assert!(refusal(room_name("name", "te\u{7}a")).1.contains("control"));
        assert!(refusal(display_name("name", "te\u{202e}a")).1.contains("control"));
        assert!(display_name("name", "عمر \u{200f}(Omar)").is_ok());
        assert!(refusal(room_name("name", "")).1.contains("at least 1"));
    }

    #[test]
    fn a_name_shows_all_that_it_is_made_of() {
        for alike in ["Ann\u{200b}a", "Anna\u{2060}", "\u{feff}Anna", "An\u{ad}na", "a\u{2028}b"] {
            assert!(refusal(display_name("name", alike)).1.contains("not shown"), "{alike:?}");
        }
        for blank in ["\u{3164}", "\u{200d}", "\u{fe0f}\u{200c}", "\u{e0041}", "\u{2800}"] {
            assert!(display_name("name", blank).is_err(), "{blank:?}");
            assert!(emoji("emoji", blank).is_err(), "{blank:?}");
        }
        for needed in ["نمی\u{200c}خواهم", "👩🏽\u{200d}🚀", "❤\u{fe0f}", "क्\u{200d}ष"]
        {
            assert!(display_name("name", needed).is_ok(), "{needed:?}");
        }
        // England's flag: a flag, and its letters as tags.
        assert!(emoji("emoji", "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}").is_ok());
        assert!(refusal(emoji("emoji", "\u{202e}👍")).1.contains("control"));
    }

    #[test]
    fn a_moment_is_one_that_clients_can_show() {
        let at = UnixMillis::from_u64;
        assert!(moment("until", at(limits::MOMENT_MS_MAX)).is_ok());
        assert_eq!(moment("until", at(u64::MAX)).unwrap_err().limit, Some(limits::MOMENT_MS_MAX));
    }

    #[test]
    fn a_reaction_is_one_short_word() {
        assert!(emoji("emoji", "👩🏽‍👩🏽‍👧🏽‍👦🏽").is_ok());
        assert!(refusal(emoji("emoji", "a b")).1.contains("one emoji"));
        assert!(refusal(emoji("emoji", &"🎉".repeat(17))).1.contains("64 bytes"));
    }

    #[test]
    fn a_page_names_its_bounds() {
        assert!(between("limit", 100, 1, 100).is_ok());
        let error = between("limit", 0, 1, 100).unwrap_err();
        assert_eq!(error.message, "limit must be between 1 and 100");
        assert_eq!(error.limit, Some(100));
    }
}
