//! How this server shows itself: name, colour, logo. The logo's bytes are a setting like the others,
//! some kilobytes, so that a backup and a check need to know nothing of them.

use base64ct::{Base64, Encoding};
use bytes::Bytes;
use folkmoot_protocol::PictureId;
use folkmoot_protocol::chat::{Branding, BrandingUpdate};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::account::token::random_id;
use crate::storage::contract::Administration;
use crate::storage::{ControlError, ReadError};

/// Under which the store keeps the name and the colour.
const BRANDING: &str = "branding";
/// Under which it keeps the logo.
const LOGO: &str = "logo";

#[derive(Debug, Default)]
pub(crate) struct Brand(RwLock<Shown>);

#[derive(Debug, Default)]
struct Shown {
    branding: Branding,
    logo: Bytes,
}

/// A logo as the store keeps it.
#[derive(Serialize, Deserialize)]
struct Kept {
    id: PictureId,
    base64: String,
}

impl Brand {
    pub(super) async fn load(store: &impl Administration) -> Result<Self, ReadError> {
        let chosen = store.setting(BRANDING).await?;
        let chosen = chosen.and_then(|text| serde_json::from_str::<BrandingUpdate>(&text).ok());
        let BrandingUpdate { name, accent } = chosen.unwrap_or_default();
        let kept = store.setting(LOGO).await?;
        let kept = kept.and_then(|text| serde_json::from_str::<Option<Kept>>(&text).ok()).flatten();
        let logo = kept.and_then(|kept| Some((kept.id, Base64::decode_vec(&kept.base64).ok()?)));
        let (logo, bytes) = logo.unzip();
        let branding = Branding { name, accent, logo };
        Ok(Self(RwLock::new(Shown { branding, logo: bytes.unwrap_or_default().into() })))
    }

    pub(super) async fn read_again(&self, store: &impl Administration) -> Result<(), ReadError> {
        let Self(read) = Self::load(store).await?;
        *self.0.write() = read.into_inner();
        Ok(())
    }

    pub(crate) fn now(&self) -> Branding {
        self.0.read().branding.clone()
    }

    /// The bytes of the logo with that id; `None` once there is another.
    pub(crate) fn logo(&self, id: PictureId) -> Option<Bytes> {
        let shown = self.0.read();
        (shown.branding.logo == Some(id)).then(|| shown.logo.clone())
    }

    /// Takes an administrator's name and colour.
    pub(crate) async fn choose(
        &self,
        store: &impl Administration,
        update: BrandingUpdate,
    ) -> Result<(), ControlError> {
        let text = serde_json::to_string(&update).expect("text and a number are JSON");
        store.set_setting(BRANDING, text).await?;
        let mut shown = self.0.write();
        (shown.branding.name, shown.branding.accent) = (update.name, update.accent);
        Ok(())
    }

    /// Takes an administrator's logo, which this server has made, or none.
    pub(crate) async fn choose_logo(
        &self,
        store: &impl Administration,
        logo: Option<Bytes>,
    ) -> Result<(), ControlError> {
        let bytes = logo.unwrap_or_default();
        let id = (!bytes.is_empty()).then(|| PictureId::from_u64(random_id()));
        let kept = id.map(|id| Kept { id, base64: Base64::encode_string(&bytes) });
        let text = serde_json::to_string(&kept).expect("a number and text are JSON");
        store.set_setting(LOGO, text).await?;
        let mut shown = self.0.write();
        (shown.branding.logo, shown.logo) = (id, bytes);
        Ok(())
    }
}
