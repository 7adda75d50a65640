//! The same statement for many rows, as one: PostgreSQL takes longer over a statement than over a
//! row. Rows come as arrays, one for each place of the statement.

use rusqlite::types::Value;
use tokio_postgres::types::Type;

use super::values::{self, Param};
use crate::storage::sql::error::{Result, SqlError};

/// Statements and the values of their rows, in the order in which they came first.
#[derive(Default)]
pub(super) struct Gathered(Vec<(String, Vec<Vec<Value>>)>);

impl Gathered {
    pub(super) fn add(&mut self, sql: &str, values: Vec<Value>) {
        match self.0.iter_mut().find(|(known, _)| known == sql) {
            Some((_, rows)) => rows.push(values),
            None => self.0.push((sql.to_owned(), vec![values])),
        }
    }

    pub(super) fn into_parts(self) -> Vec<(String, Vec<Vec<Value>>)> {
        self.0
    }
}

/// `INSERT … VALUES (?1, …)` or `UPDATE … WHERE …` for rows of these kinds, still in SQLite's
/// words.
pub(super) fn for_many(sql: &str, kinds: &[Type]) -> Result<String> {
    let arrays: Vec<_> = kinds
        .iter()
        .enumerate()
        .map(|(index, kind)| format!("?{}::{}[]", index + 1, kind.name()))
        .collect();
    let columns: Vec<_> = (1..=kinds.len()).map(|column| format!("c{column}")).collect();
    let from = format!("FROM unnest({}) AS d ({})", arrays.join(", "), columns.join(", "));
    if let Some((head, rest)) = sql.split_once("VALUES (")
        && let Some((values, tail)) = rest.rsplit_once(')')
    {
        return Ok(format!("{head}SELECT {} {from}{tail}", values.replace('?', "d.c")));
    }
    match sql.split_once(" WHERE ") {
        Some((head, tail)) => {
            let (head, tail) = (head.replace('?', "d.c"), tail.replace('?', "d.c"));
            Ok(format!("{head} {from} WHERE {tail}"))
        }
        None => Err(SqlError::Parameter(format!("not a statement for many rows: {sql}"))),
    }
}

/// The values of many rows, place by place.
pub(super) fn by_place(rows: Vec<Vec<Value>>) -> Result<Vec<Vec<Param>>> {
    let mut places: Vec<Vec<Param>> = Vec::new();
    for row in rows {
        let row = values::params(row)?;
        places.resize_with(row.len(), Vec::new);
        for (place, value) in places.iter_mut().zip(row) {
            place.push(value);
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_for_a_row_becomes_one_for_many() {
        let kinds = [Type::INT8, Type::TEXT];
        let from = "FROM unnest(?1::int8[], ?2::text[]) AS d (c1, c2)";
        assert_eq!(
            for_many("INSERT OR IGNORE INTO m VALUES (?1, ?2, NULL)", &kinds).unwrap(),
            format!("INSERT OR IGNORE INTO m SELECT d.c1, d.c2, NULL {from}")
        );
        assert_eq!(
            for_many("UPDATE r SET name = ?2 WHERE id = ?1", &kinds).unwrap(),
            format!("UPDATE r SET name = d.c2 {from} WHERE id = d.c1")
        );
        assert!(for_many("DELETE FROM r", &kinds).is_err());
    }
}
