//! Names of files: what a sender calls a file is shown to others and offered when they save it, so
//! nothing in it may mislead or reach beyond a folder.

use folkmoot_protocol::limits::FILE_NAME_CHARS_MAX;
use folkmoot_protocol::rpc::RpcError;

/// Characters that change the direction of writing: they make `gpj.exe` look like `exe.jpg`.
const DIRECTIONS: [char; 12] = [
    '\u{200e}', '\u{200f}', '\u{061c}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// The last part of a path, without characters that mislead.
pub(crate) fn clean(given: &str) -> Result<String, RpcError> {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_kept = |char: &char| !char.is_control() && !DIRECTIONS.contains(char);
    let name: String = last.chars().filter(is_kept).collect();
    let name = name.trim();
    if name.chars().nth(FILE_NAME_CHARS_MAX).is_some() {
        return Err(RpcError::too_large("name", FILE_NAME_CHARS_MAX, "characters"));
    }
    if name.trim_matches('.').is_empty() {
        return Err(RpcError::invalid("name", "must name a file"));
    }
    Ok(name.to_owned())
}

/// The value of `Content-Disposition` (RFC 6266): shown in the page or saved, under this name.
pub(crate) fn disposition(kind: &str, name: &str) -> String {
    // For programs that know only ASCII; quotes and backslashes would end the string.
    let plain: String = name
        .chars()
        .map(|char| if char.is_ascii() && !"\"\\%".contains(char) { char } else { '_' })
        .collect();
    let mut exact = String::new();
    for byte in name.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => exact.push(byte.into()),
            false => exact.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{kind}; filename=\"{plain}\"; filename*=UTF-8''{exact}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_folders_and_what_misleads() {
        for (given, expected) in [
            ("photo.jpg", "photo.jpg"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\me\\notes.txt", "notes.txt"),
            ("exe\u{202e}gpj.png", "exegpj.png"),
            ("new\nline\0.txt", "newline.txt"),
            ("  Übersicht 世界.pdf ", "Übersicht 世界.pdf"),
            ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"),
        ] {
            assert_eq!(clean(given).unwrap(), expected);
        }
    }

    #[test]
    fn what_names_nothing_or_too_much_is_refused_with_the_limit() {
        for given in ["", "..", "a/", "\u{202e}", " "] {
            assert!(clean(given).unwrap_err().message.contains("must name a file"), "{given:?}");
        }
        let error = clean(&"x".repeat(129)).unwrap_err();
        assert_eq!(error.limit, Some(128));
    }

    #[test]
    fn a_header_carries_any_name_and_cannot_be_broken_out_of() {
        let header = disposition("attachment", "a\"b\\c ü.txt");
        assert_eq!(
            header,
            "attachment; filename=\"a_b_c _.txt\"; filename*=UTF-8''a%22b%5Cc%20%C3%BC.txt"
        );
    }
}
