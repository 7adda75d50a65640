//! Options of a namespace that a backend sets otherwise for one subscription.

use std::sync::Arc;

use althing::Wire;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use serde::Deserialize;

use crate::rules::Rule;

/// What is set otherwise; what is absent is as in the namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Wire)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Overrides {
    pub(crate) presence: Option<Switch>,
    pub(crate) join_leave: Option<Switch>,
    pub(crate) force_push_join_leave: Option<Switch>,
    pub(crate) force_positioning: Option<Switch>,
    pub(crate) force_recovery: Option<Switch>,
}

/// One option, as Centrifugo's API writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Wire)]
pub(crate) struct Switch {
    pub(crate) value: bool,
}

impl Overrides {
    /// The same for most subscriptions, of which nothing is set otherwise.
    pub(crate) fn over_shared(&self, rule: &Arc<Rule>) -> Result<Arc<Rule>, RpcError> {
        if *self == Self::default() { Ok(rule.clone()) } else { self.over(rule).map(Arc::new) }
    }

    /// The rule of one subscription; an error if its namespace cannot do what is set.
    pub(crate) fn over(&self, rule: &Rule) -> Result<Rule, RpcError> {
        let is_on = |switch: Option<Switch>| switch.is_some_and(|switch| switch.value);
        let needs_history = is_on(self.force_positioning) || is_on(self.force_recovery);
        if needs_history && rule.keep().is_none() {
            let text = "override: force_positioning and force_recovery need a history";
            return Err(RpcError::new(ErrorCode::BadRequest, text));
        }
        Ok(rule.with(|options| {
            for (option, switch) in [
                (&mut options.presence, self.presence),
                (&mut options.join_leave, self.join_leave),
                (&mut options.force_push_join_leave, self.force_push_join_leave),
                (&mut options.force_positioning, self.force_positioning),
                (&mut options.force_recovery, self.force_recovery),
            ] {
                *option = switch.map_or(*option, |switch| switch.value);
            }
        }))
    }
}
