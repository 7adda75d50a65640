//! What is handed to a statement: the driver's own ways to pass values, which can also be asked for
//! the values themselves.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

use super::error::{Result, SqlError};

/// Values for the numbered places of a statement.
pub(crate) trait Params: rusqlite::Params {
    /// The values, in the order of their numbers.
    fn values(&self) -> Result<Vec<Value>>;
}

impl Params for [&(dyn ToSql + Send + Sync); 0] {
    fn values(&self) -> Result<Vec<Value>> {
        Ok(Vec::new())
    }
}

impl Params for &[&dyn ToSql] {
    fn values(&self) -> Result<Vec<Value>> {
        self.iter().map(|param| value(*param)).collect()
    }
}

macro_rules! arrays {
    ($($len:literal)+) => {$(
        impl<T: ToSql> Params for [T; $len] {
            fn values(&self) -> Result<Vec<Value>> {
                self.iter().map(|param| value(param)).collect()
            }
        }
    )+};
}

arrays!(1 2 3 4 5 6 7 8);

fn value(param: &dyn ToSql) -> Result<Value> {
    Ok(match param.to_sql()? {
        ToSqlOutput::Owned(value) => value,
        ToSqlOutput::Borrowed(ValueRef::Null) => Value::Null,
        ToSqlOutput::Borrowed(ValueRef::Integer(number)) => Value::Integer(number),
        ToSqlOutput::Borrowed(ValueRef::Real(number)) => Value::Real(number),
        ToSqlOutput::Borrowed(ValueRef::Blob(bytes)) => Value::Blob(bytes.to_vec()),
        ToSqlOutput::Borrowed(ValueRef::Text(text)) => match std::str::from_utf8(text) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => return Err(SqlError::Parameter("a text is not UTF-8".to_owned())),
        },
        _ => return Err(SqlError::Parameter("a value is of no known kind".to_owned())),
    })
}
