//! What somebody may do who is no node, as the name in a certificate says.
//!
//! A node's certificate names `<node>.<cluster>.althing`; that of a client
//! `<who>.<capability>.client.<cluster>.althing`, once for each capability. Names that end in
//! `client` belong to no node, so a client's certificate is never one of a node.

use std::fmt;

use althing::Wire;

/// What somebody may do who is no node.
///
/// Nodes may do everything, and so may everybody where connections are not encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Wire)]
#[non_exhaustive]
pub enum Capability {
    /// See nodes, buckets and actors.
    Look,
    /// Tell and ask actors.
    Talk,
    /// Move actors, drain nodes, and [`Look`](Self::Look).
    Manage,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Look, Self::Talk, Self::Manage];

    /// As it stands in a certificate.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Talk => "talk",
            Self::Manage => "manage",
        }
    }

    /// Whether who may do this may do that.
    pub fn includes(self, other: Self) -> bool {
        self == other || (self == Self::Manage && other == Self::Look)
    }

    /// What a name says, without cluster and suffix; `None` of a node, and of what means nothing.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let (who, word) = name.strip_suffix(".client")?.rsplit_once('.')?;
        Self::ALL.into_iter().find(|known| known.as_str() == word && !who.is_empty())
    }

    /// The name of whoever may do it.
    #[cfg(feature = "certificates")]
    pub(crate) fn name_for(self, who: &str) -> String {
        format!("{who}.{}.client", self.as_str())
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether no node can have that name.
pub(crate) fn is_of_client(name: &str) -> bool {
    name == "client" || name.ends_with(".client")
}

#[cfg(test)]
mod tests {
    use super::{Capability, is_of_client};

    #[test]
    fn a_name_says_what_its_owner_may_do_and_a_nodes_name_says_nothing() {
        assert_eq!(Capability::of_name("ada.look.client"), Some(Capability::Look));
        assert_eq!(Capability::of_name("ops.ada.manage.client"), Some(Capability::Manage));
        for name in ["one", "look.client", ".look.client", "ada.rule.client", "ada.look", "client"]
        {
            assert_eq!(Capability::of_name(name), None, "{name}");
        }
        assert!(is_of_client("look.client") && is_of_client("ada.rule.client"));
        assert!(!is_of_client("one") && !is_of_client("my-client"));
    }
}
