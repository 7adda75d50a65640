//! What administrators set from the browser. Kept in the store and read once, at the start.

mod brand;
mod registration;

use folkmoot_protocol::chat::{AdminSettings, Registration};

pub(crate) use brand::Brand;
pub(crate) use registration::Registrations;

use crate::storage::ReadError;
use crate::storage::contract::Administration;

#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) registrations: Registrations,
    pub(crate) brand: Brand,
}

impl Settings {
    /// What the store has; `registration` is what the operator has fixed.
    pub(crate) async fn load(
        store: &impl Administration,
        registration: Option<Registration>,
    ) -> Result<Self, ReadError> {
        let registrations = Registrations::load(store, registration).await?;
        Ok(Self { registrations, brand: Brand::load(store).await? })
    }

    /// Takes over what was set on another node.
    pub(crate) async fn read_again(&self, store: &impl Administration) -> Result<(), ReadError> {
        self.registrations.read_again(store).await?;
        self.brand.read_again(store).await
    }

    /// As administrators see them.
    pub(crate) fn view(&self) -> AdminSettings {
        AdminSettings {
            registration: self.registrations.now(),
            registration_fixed: self.registrations.is_fixed(),
            branding: self.brand.now(),
        }
    }
}
