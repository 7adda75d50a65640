//! Who may make an account. What the operator wrote into a flag or the settings file holds; else
//! what an administrator has chosen from the browser; else everybody.

use folkmoot_protocol::chat::Registration;
use parking_lot::RwLock;

use crate::storage::contract::Administration;
use crate::storage::{ControlError, ReadError};

/// Under which the store keeps it.
const SETTING: &str = "registration";

#[derive(Debug, Default)]
pub(crate) struct Registrations {
    now: RwLock<Registration>,
    is_fixed: bool,
}

impl Registrations {
    pub(crate) async fn load(
        store: &impl Administration,
        fixed: Option<Registration>,
    ) -> Result<Self, ReadError> {
        let chosen = match fixed {
            Some(fixed) => Some(fixed),
            None => store.setting(SETTING).await?.and_then(|text| serde_json::from_str(&text).ok()),
        };
        let now = RwLock::new(chosen.unwrap_or_default());
        Ok(Self { now, is_fixed: fixed.is_some() })
    }

    pub(super) async fn read_again(&self, store: &impl Administration) -> Result<(), ReadError> {
        if self.is_fixed {
            return Ok(());
        }
        let read = Self::load(store, None).await?;
        *self.now.write() = read.now();
        Ok(())
    }

    pub(crate) fn now(&self) -> Registration {
        *self.now.read()
    }

    pub(crate) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Takes an administrator's choice.
    pub(crate) async fn choose(
        &self,
        store: &impl Administration,
        registration: Registration,
    ) -> Result<(), ControlError> {
        if self.is_fixed {
            let text = "registration is set by a flag or the settings file of the server";
            return Err(ControlError::NotAllowed(text));
        }
        let text = serde_json::to_string(&registration).expect("a word is JSON");
        store.set_setting(SETTING, text).await?;
        *self.now.write() = registration;
        Ok(())
    }
}
