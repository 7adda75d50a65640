//! A subscriber's filter over the tags of publications, as a value: it is checked once, when its
//! subscription is made, and then says of each publication whether it goes out.
//!
//! Meant to save bandwidth, not to keep secrets: a channel's history is the same for all who may
//! read it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use folkmoot_protocol::frame::FilterNode;

/// Nodes in one filter: each publication asks up to all of them, for each subscriber.
const NODES_LEN_MAX: usize = 100;
/// Values in all sets of one filter.
const VALUES_LEN_MAX: usize = 1_000;
/// How deep nodes may be in each other.
const DEPTH_MAX: usize = 16;

/// What a subscriber wants to hear.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Filter {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Tag(String, Test),
}

/// What is asked of one tag.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    Is(String),
    IsNot(String),
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    IsMissing,
    StartsWith(String),
    EndsWith(String),
    Contains(String),
    /// The orders that pass, and the number it is compared with; `None`: that is none, and nothing
    /// passes.
    Compares(&'static [Ordering], Option<Number>),
}

/// A decimal number of any length, without zeros that say nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Number {
    is_negative: bool,
    whole: String,
    part: String,
}

/// What is wrong with a filter.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoFilter {
    #[error("more than {NODES_LEN_MAX} nodes")]
    TooLarge,
    #[error("more than {VALUES_LEN_MAX} vals")]
    TooManyValues,
    #[error("nodes are more than {DEPTH_MAX} deep")]
    TooDeep,
    #[error("op `{0}` is not known")]
    UnknownOp(String),
    #[error("cmp `{0}` is not known")]
    UnknownComparison(String),
    #[error("`{0}` needs one node or more")]
    NoNodes(String),
    #[error("`not` needs exactly one node")]
    NotOne,
    #[error("`{0}` needs a key")]
    NoKey(String),
    #[error("`{0}` needs val and takes no vals")]
    NoValue(String),
    #[error("`{0}` needs vals and takes no val")]
    NoValues(String),
    #[error("`{0}` takes neither val nor vals")]
    Values(String),
}

/// How much of a filter may still come.
struct Left {
    nodes: usize,
    values: usize,
}

impl Filter {
    /// Checks a filter as a client sent it.
    pub(crate) fn new(node: FilterNode) -> Result<Self, NoFilter> {
        let mut left = Left { nodes: NODES_LEN_MAX, values: VALUES_LEN_MAX };
        Self::read(node, DEPTH_MAX, &mut left)
    }

    fn read(node: FilterNode, depth: usize, left: &mut Left) -> Result<Self, NoFilter> {
        left.nodes = left.nodes.checked_sub(1).ok_or(NoFilter::TooLarge)?;
        let inner = depth.checked_sub(1).ok_or(NoFilter::TooDeep)?;
        if node.op.is_empty() {
            return Self::comparison(node, left);
        }
        let FilterNode { op, nodes, .. } = node;
        let mut read = Vec::new();
        for node in nodes {
            read.push(Self::read(node, inner, left)?);
        }
        match op.as_str() {
            "and" | "or" if read.is_empty() => Err(NoFilter::NoNodes(op)),
            "and" => Ok(Self::All(read)),
            "or" => Ok(Self::Any(read)),
            "not" if read.len() > 1 => Err(NoFilter::NotOne),
            "not" => read.pop().map(|one| Self::Not(Box::new(one))).ok_or(NoFilter::NotOne),
            _ => Err(NoFilter::UnknownOp(op)),
        }
    }

    fn comparison(node: FilterNode, left: &mut Left) -> Result<Self, NoFilter> {
        let FilterNode { key, cmp, val, vals, .. } = node;
        left.values = left.values.checked_sub(vals.len()).ok_or(NoFilter::TooManyValues)?;
        let has_value = !val.is_empty() && vals.is_empty();
        let has_values = val.is_empty() && !vals.is_empty();
        let has_none = val.is_empty() && vals.is_empty();
        match cmp.as_str() {
            "in" | "nin" if !has_values => return Err(NoFilter::NoValues(cmp)),
            "ex" | "nex" if !has_none => return Err(NoFilter::Values(cmp)),
            "in" | "nin" | "ex" | "nex" => {}
            "eq" | "neq" | "sw" | "ew" | "ct" | "gt" | "gte" | "lt" | "lte" => {
                if !has_value {
                    return Err(NoFilter::NoValue(cmp));
                }
            }
            _ => return Err(NoFilter::UnknownComparison(cmp)),
        }
        if key.is_empty() && !matches!(cmp.as_str(), "ex" | "nex") {
            return Err(NoFilter::NoKey(cmp));
        }
        let compares = |passing| Test::Compares(passing, Number::read(&val));
        let test = match cmp.as_str() {
            "eq" => Test::Is(val),
            "neq" => Test::IsNot(val),
            "in" => Test::In(vals.into_iter().collect()),
            "nin" => Test::NotIn(vals.into_iter().collect()),
            "ex" => Test::Exists,
            "nex" => Test::IsMissing,
            "sw" => Test::StartsWith(val),
            "ew" => Test::EndsWith(val),
            "ct" => Test::Contains(val),
            "gt" => compares(&[Ordering::Greater]),
            "gte" => compares(&[Ordering::Greater, Ordering::Equal]),
            "lt" => compares(&[Ordering::Less]),
            _ => compares(&[Ordering::Less, Ordering::Equal]),
        };
        Ok(Self::Tag(key, test))
    }

    /// Whether a publication with these tags goes out.
    pub(crate) fn matches(&self, tags: &BTreeMap<String, String>) -> bool {
        match self {
            Self::All(filters) => filters.iter().all(|filter| filter.matches(tags)),
            Self::Any(filters) => filters.iter().any(|filter| filter.matches(tags)),
            Self::Not(filter) => !filter.matches(tags),
            Self::Tag(key, test) => test.passes(tags.get(key).map(String::as_str)),
        }
    }
}

impl Test {
    /// Whether a tag with this value passes; `None`: there is no such tag.
    fn passes(&self, tag: Option<&str>) -> bool {
        match self {
            Self::Is(value) => tag == Some(value),
            Self::IsNot(value) => tag != Some(value),
            // To sets, a tag that is not there is an empty one.
            Self::In(values) => values.contains(tag.unwrap_or_default()),
            Self::NotIn(values) => !values.contains(tag.unwrap_or_default()),
            Self::Exists => tag.is_some(),
            Self::IsMissing => tag.is_none(),
            Self::StartsWith(value) => tag.is_some_and(|tag| tag.starts_with(value)),
            Self::EndsWith(value) => tag.is_some_and(|tag| tag.ends_with(value)),
            Self::Contains(value) => tag.is_some_and(|tag| tag.contains(value)),
            Self::Compares(passing, value) => tag
                .and_then(Number::read)
                .zip(value.as_ref())
                .is_some_and(|(tag, value)| passing.contains(&tag.compare(value))),
        }
    }
}

impl Number {
    /// Reads `-12.50` and the like; `None`: it is no number.
    fn read(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, part) = match unsigned.split_once('.') {
            Some((_, "")) => return None,
            Some((whole, part)) => (whole, part),
            None => (unsigned, ""),
        };
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(part) {
            return None;
        }
        let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
        let is_zero = whole.is_empty() && part.is_empty();
        let is_negative = text.starts_with('-') && !is_zero;
        Some(Self { is_negative, whole: whole.to_owned(), part: part.to_owned() })
    }

    fn compare(&self, other: &Self) -> Ordering {
        // Of two numbers without leading zeros, the longer one is larger.
        let size = |one: &Self| one.whole.len();
        let magnitude = size(self)
            .cmp(&size(other))
            .then_with(|| self.whole.cmp(&other.whole))
            .then_with(|| self.part.cmp(&other.part));
        match (self.is_negative, other.is_negative) {
            (false, false) => magnitude,
            (true, true) => magnitude.reverse(),
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(json: &str) -> Result<Filter, NoFilter> {
        Filter::new(serde_json::from_str(json).expect("a node"))
    }

    fn matches(json: &str, tags: &[(&str, &str)]) -> bool {
        let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        filter(json).expect("a filter").matches(&tags.collect())
    }

    /// A comparison of the tag `a`.
    fn compares(cmp: &str, val: &str, tags: &[(&str, &str)]) -> bool {
        matches(&format!(r#"{{"key":"a","cmp":"{cmp}","val":"{val}"}}"#), tags)
    }

    #[test]
    fn each_comparison_says_what_its_name_does() {
        for (cmp, val, of_abc, of_none) in [
            ("eq", "abc", true, false),
            ("eq", "ab", false, false),
            ("neq", "abc", false, true),
            ("neq", "ab", true, true),
            ("sw", "ab", true, false),
            ("sw", "bc", false, false),
            ("ew", "bc", true, false),
            ("ew", "ab", false, false),
            ("ct", "b", true, false),
            ("ct", "d", false, false),
            ("gt", "1", false, false),
            ("ex", "", true, false),
            ("nex", "", false, true),
        ] {
            assert_eq!(compares(cmp, val, &[("a", "abc")]), of_abc, "{cmp} {val}");
            assert_eq!(compares(cmp, val, &[("b", "abc")]), of_none, "{cmp} {val}");
        }
        let among = r#"{"key":"a","cmp":"in","vals":["x","y"]}"#;
        let beside = r#"{"key":"a","cmp":"nin","vals":["x","y"]}"#;
        for (tags, is_in) in [(&[("a", "x")][..], true), (&[("a", "z")], false), (&[], false)] {
            assert_eq!((matches(among, tags), matches(beside, tags)), (is_in, !is_in));
        }
    }

    #[test]
    fn numbers_are_compared_as_numbers_however_they_are_written() {
        for (tag, value, order) in [
            ("9", "10", Ordering::Less),
            ("10", "9.99", Ordering::Greater),
            ("1.50", "1.5", Ordering::Equal),
            ("007", "+7", Ordering::Equal),
            ("-2", "-1", Ordering::Less),
            ("-0.0", "0", Ordering::Equal),
            ("-1", "0.1", Ordering::Less),
            ("0.45", "0.5", Ordering::Less),
            (
                "100000000000000000000000000000000000001",
                "100000000000000000000000000000000000000",
                Ordering::Greater,
            ),
        ] {
            let tags = [("a", tag)];
            assert_eq!(compares("lt", value, &tags), order == Ordering::Less, "{tag} {value}");
            assert_eq!(compares("lte", value, &tags), order != Ordering::Greater, "{tag} {value}");
            assert_eq!(compares("gt", value, &tags), order == Ordering::Greater, "{tag} {value}");
            assert_eq!(compares("gte", value, &tags), order != Ordering::Less, "{tag} {value}");
        }
        for none in ["", "x", "1e3", "1.", ".5", "--1", "1.2.3", "٣"] {
            for cmp in ["lt", "lte", "gt", "gte"] {
                assert!(!compares(cmp, "1", &[("a", none)]), "{none}");
                assert!(none.is_empty() || !compares(cmp, none, &[("a", "1")]), "{none}");
            }
        }
    }

    #[test]
    fn nodes_are_put_together_by_and_or_and_not() {
        let is = |value: &str| format!(r#"{{"key":"a","cmp":"eq","val":"{value}"}}"#);
        let has_b = r#"{"key":"b","cmp":"ex"}"#;
        let all = format!(r#"{{"op":"and","nodes":[{},{has_b}]}}"#, is("x"));
        let any = format!(r#"{{"op":"or","nodes":[{},{has_b}]}}"#, is("x"));
        let none = format!(r#"{{"op":"not","nodes":[{any}]}}"#);
        for (tags, wanted) in [
            (&[("a", "x"), ("b", "")][..], (true, true, false)),
            (&[("a", "x")], (false, true, false)),
            (&[("a", "y")], (false, false, true)),
        ] {
            assert_eq!((matches(&all, tags), matches(&any, tags), matches(&none, tags)), wanted);
        }
    }

    #[test]
    fn what_is_no_filter_is_refused_with_what_is_wrong() {
        for (json, wrong) in [
            (r#"{"op":"xor"}"#, NoFilter::UnknownOp("xor".to_owned())),
            ("{}", NoFilter::UnknownComparison(String::new())),
            (r#"{"key":"a","cmp":"like","val":"x"}"#, NoFilter::UnknownComparison("like".into())),
            (r#"{"op":"and"}"#, NoFilter::NoNodes("and".to_owned())),
            (r#"{"op":"not"}"#, NoFilter::NotOne),
            (r#"{"cmp":"eq","val":"x"}"#, NoFilter::NoKey("eq".to_owned())),
            (r#"{"key":"a","cmp":"eq"}"#, NoFilter::NoValue("eq".to_owned())),
            (r#"{"key":"a","cmp":"eq","val":"x","vals":["x"]}"#, NoFilter::NoValue("eq".into())),
            (r#"{"key":"a","cmp":"in","val":"x"}"#, NoFilter::NoValues("in".to_owned())),
            (r#"{"key":"a","cmp":"ex","val":"x"}"#, NoFilter::Values("ex".to_owned())),
            (r#"{"op":"not","nodes":[{"op":"or"}]}"#, NoFilter::NoNodes("or".to_owned())),
        ] {
            assert_eq!(filter(json), Err(wrong), "{json}");
        }
    }

    #[test]
    fn a_filter_is_bounded_in_every_way_it_can_grow() {
        let leaf = || FilterNode { cmp: "ex".to_owned(), ..FilterNode::default() };
        let with = |nodes| FilterNode { op: "or".to_owned(), nodes, ..FilterNode::default() };
        assert!(Filter::new(with(vec![leaf(); NODES_LEN_MAX - 1])).is_ok());
        assert_eq!(Filter::new(with(vec![leaf(); NODES_LEN_MAX])), Err(NoFilter::TooLarge));
        let deep = |depth| (1..depth).fold(leaf(), |inner, _| with(vec![inner]));
        assert!(Filter::new(deep(DEPTH_MAX)).is_ok());
        assert_eq!(Filter::new(deep(DEPTH_MAX + 1)), Err(NoFilter::TooDeep));
        let (key, cmp) = ("a".to_owned(), "in".to_owned());
        let vals = vec!["x".to_owned(); VALUES_LEN_MAX + 1];
        let set = FilterNode { key, cmp, vals, ..FilterNode::default() };
        assert_eq!(Filter::new(set), Err(NoFilter::TooManyValues));
    }
}
