//! SQLite's words for PostgreSQL. What differs in more than words is written in the statements in a
//! way that both understand: a conflict names its columns, a truth is not a number.
//!
//! Texts are compared by their bytes in both (the columns of PostgreSQL are `COLLATE "C"`), and
//! letters are folded by ASCII alone, so lists have one order.

/// Bytes of a text as it was given; see `values` for how PostgreSQL keeps some of them.
const BYTES_OF_BODY: (&str, &str) = (
    "length(CAST(body AS BLOB))",
    r"octet_length(replace(replace(body, E'\uFDD00', '0'), E'\uFDD01', '111'))",
);

/// A statement of SQLite's as PostgreSQL understands it.
pub(super) fn for_postgres(sql: &str) -> String {
    let sql = sql.replace(BYTES_OF_BODY.0, BYTES_OF_BODY.1);
    let mut out = String::with_capacity(sql.len() + 16);
    let mut rest = sql.as_str();
    let mut tail = "";
    while let Some(first) = rest.chars().next() {
        let len = token_len(rest, first);
        let (token, after) = rest.split_at(len);
        rest = after;
        match token {
            "user" | "offset" => {
                out.push('"');
                out.push_str(token);
                out.push('"');
            }
            "?" => out.push('$'),
            "LIKE" => out.push_str("ILIKE"),
            "char" if rest.starts_with('(') => out.push_str("chr"),
            "instr" if rest.starts_with('(') => out.push_str("strpos"),
            "max" if has_two_arguments(rest) => out.push_str("greatest"),
            "min" if has_two_arguments(rest) => out.push_str("least"),
            // Only says in which order SQLite is to look.
            "CROSS" => rest = rest.trim_start(),
            "INDEXED" => rest = skip_words(rest, 2).trim_start(),
            "OR" if rest.starts_with(" IGNORE ") => {
                rest = skip_words(rest, 1).trim_start();
                tail = " ON CONFLICT DO NOTHING";
            }
            "COLLATE" if rest.starts_with(" NOCASE") => {
                rest = skip_words(rest, 1);
                fold_last_word(&mut out);
            }
            token => out.push_str(token),
        }
    }
    out.push_str(tail);
    out
}

/// Bytes of the word or text at the beginning of `rest`; of anything else, one character.
fn token_len(rest: &str, first: char) -> usize {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match first {
        '\'' => rest[1..].find('\'').map_or(rest.len(), |end| end + 2),
        first if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
        first => first.len_utf8(),
    }
}

fn skip_words(rest: &str, count: usize) -> &str {
    (0..count).fold(rest, |rest, _| {
        let rest = rest.trim_start();
        &rest[rest.find([' ', ')', ',']).unwrap_or(rest.len())..]
    })
}

/// Whether the parentheses at the beginning hold more than one argument: then it is no aggregate.
fn has_two_arguments(rest: &str) -> bool {
    let mut depth = 0;
    for c in rest.chars() {
        match c {
            '(' => depth += 1,
            ')' if depth <= 1 => return false,
            ')' => depth -= 1,
            ',' if depth == 1 => return true,
            _ if depth == 0 => return false,
            _ => {}
        }
    }
    false
}

fn fold_last_word(out: &mut String) {
    let word_end = out.trim_end().len();
    out.truncate(word_end);
    let start = out.rfind([' ', '(']).map_or(0, |at| at + 1);
    let word = out.split_off(start);
    out.push_str("lower(");
    out.push_str(&word);
    out.push(')');
}

#[cfg(test)]
mod tests {
    use super::for_postgres;

    #[test]
    fn words_of_sqlite_become_those_of_postgresql() {
        for (sqlite, postgres) in [
            (
                "SELECT m.user FROM m WHERE offset > ?12",
                "SELECT m.\"user\" FROM m WHERE \"offset\" > $12",
            ),
            (
                "SELECT 'user ?1', 'it''s' LIMIT 1 OFFSET ?1",
                "SELECT 'user ?1', 'it''s' LIMIT 1 OFFSET $1",
            ),
            (
                "INSERT OR IGNORE INTO t VALUES (?1)",
                "INSERT INTO t VALUES ($1) ON CONFLICT DO NOTHING",
            ),
            (
                "SELECT max(a), max(a, b), min(f(a, b))",
                "SELECT max(a), greatest(a, b), min(f(a, b))",
            ),
            ("FROM m INDEXED BY i JOIN n", "FROM m JOIN n"),
            ("FROM m CROSS JOIN n ON a = b", "FROM m JOIN n ON a = b"),
            ("ORDER BY name COLLATE NOCASE, id", "ORDER BY lower(name), id"),
            ("(name COLLATE NOCASE = ?2)", "(lower(name) = $2)"),
            ("a LIKE b OR users.name < char(1)", "a ILIKE b OR users.name < chr(1)"),
        ] {
            assert_eq!(for_postgres(sqlite), postgres);
        }
    }
}
