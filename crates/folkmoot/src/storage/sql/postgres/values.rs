//! SQLite's four kinds of values as PostgreSQL sends and takes them.
//!
//! PostgreSQL keeps no NUL in a text. A text that has one is kept with [`MARK`] and a digit in its
//! place, and so is the mark itself, which is no character of any language.

use std::borrow::Cow;
use std::error::Error;

use bytes::{BufMut, BytesMut};
use rusqlite::types::{FromSql, Value, ValueRef};
use tokio_postgres::Row;
use tokio_postgres::types::{self, IsNull, ToSql, Type};

use crate::storage::sql::error::{Result, SqlError};

/// Stands before what a text cannot hold. `dialect` knows it too, for the lengths of texts.
pub(crate) const MARK: char = '\u{FDD0}';
const NUL: &str = "\u{FDD0}0";
const MARK_ITSELF: &str = "\u{FDD0}1";

/// A value on its way to the server.
#[derive(Debug)]
pub(crate) struct Param(Value);

pub(super) fn params(values: Vec<Value>) -> Result<Vec<Param>> {
    let kept = |value| match value {
        Value::Text(text) => Ok(Param(Value::Text(escaped(text)))),
        Value::Real(_) => Err(SqlError::Parameter("a broken number has no column".to_owned())),
        value => Ok(Param(value)),
    };
    values.into_iter().map(kept).collect()
}

fn escaped(text: String) -> String {
    match text.contains(['\0', MARK]) {
        false => text,
        true => text.replace(MARK, MARK_ITSELF).replace('\0', NUL),
    }
}

fn plain(text: &str) -> Cow<'_, str> {
    match text.contains(MARK) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(text.replace(NUL, "\0").replace(MARK_ITSELF, "\u{FDD0}")),
    }
}

impl Param {
    pub(super) fn as_sql(&self) -> &(dyn ToSql + Sync) {
        self
    }
}

impl ToSql for Param {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match &self.0 {
            Value::Null => return Ok(IsNull::Yes),
            Value::Integer(number) => match *kind {
                Type::INT8 => out.put_i64(*number),
                Type::INT4 => out.put_i32(i32::try_from(*number)?),
                Type::BOOL => out.put_u8(u8::from(*number != 0)),
                _ => return Err(format!("a number for a {kind}").into()),
            },
            Value::Text(text) => match *kind {
                Type::TEXT => out.put_slice(text.as_bytes()),
                _ => return Err(format!("a text for a {kind}").into()),
            },
            Value::Blob(bytes) => match *kind {
                Type::BYTEA => out.put_slice(bytes),
                _ => return Err(format!("bytes for a {kind}").into()),
            },
            Value::Real(_) => return Err("a broken number has no column".into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    types::to_sql_checked!();
}

/// A value as it came from the server.
struct Received<'r>(ValueRef<'r>);

impl<'r> types::FromSql<'r> for Received<'r> {
    fn from_sql(kind: &Type, bytes: &'r [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *kind {
            Type::INT8 => ValueRef::Integer(i64::from_be_bytes(bytes.try_into()?)),
            Type::INT4 => ValueRef::Integer(i32::from_be_bytes(bytes.try_into()?).into()),
            Type::BOOL => ValueRef::Integer(i64::from(bytes != [0])),
            Type::NUMERIC => ValueRef::Integer(whole_number(bytes)?),
            Type::BYTEA => ValueRef::Blob(bytes),
            _ => ValueRef::Text(bytes),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(ValueRef::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

pub(in crate::storage::sql) fn get<T: FromSql>(row: &Row, column: usize) -> Result<T> {
    match get_ref(row, column)? {
        ValueRef::Text(text) => {
            let text = plain(ValueRef::Text(text).as_str()?);
            Ok(T::column_result(ValueRef::Text(text.as_bytes()))?)
        }
        value => Ok(T::column_result(value)?),
    }
}

pub(in crate::storage::sql) fn get_ref(row: &Row, column: usize) -> Result<ValueRef<'_>> {
    Ok(row.try_get::<_, Received<'_>>(column)?.0)
}

/// A sum, which PostgreSQL gives without limits: digits of 10,000, the largest first.
fn whole_number(bytes: &[u8]) -> Result<i64, Box<dyn Error + Sync + Send>> {
    let parts: Vec<u16> =
        bytes.chunks_exact(2).map(|part| u16::from_be_bytes([part[0], part[1]])).collect();
    let [count, weight, sign, _, digits @ ..] = &parts[..] else {
        return Err("a number is cut off".into());
    };
    if *count == 0 {
        return Ok(0);
    }
    let (weight, mut number) = (usize::from(*weight), 0_i64);
    // Digits of zero at the end are not sent.
    for place in 0..=weight {
        let digit = digits.get(place).copied().unwrap_or_default();
        number = number.checked_mul(10_000).ok_or("a sum is too large")?;
        number = number.checked_add(digit.into()).ok_or("a sum is too large")?;
    }
    Ok(if *sign == 0 { number } else { -number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_as_it_was() {
        for text in ["", "plain", "a\0b", "\u{FDD0}", "\u{FDD0}0\0\u{FDD0}1", "\0\0"] {
            let kept = escaped(text.to_owned());
            assert!(!kept.contains('\0'));
            assert_eq!(plain(&kept), text);
        }
    }

    #[test]
    fn sums_are_whole_numbers() {
        let number = |parts: &[u16]| {
            whole_number(&parts.iter().flat_map(|part| part.to_be_bytes()).collect::<Vec<_>>())
        };
        assert_eq!(number(&[0, 0, 0, 0]).unwrap(), 0);
        assert_eq!(number(&[1, 0, 0, 0, 42]).unwrap(), 42);
        assert_eq!(number(&[2, 1, 0, 0, 3, 7]).unwrap(), 30_007);
        assert_eq!(number(&[1, 1, 0x4000, 0, 3]).unwrap(), -30_000);
        assert!(number(&[6, 5, 0, 0, 9, 9, 9, 9, 9, 9]).is_err());
    }
}
