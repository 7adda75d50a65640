//! How a server shows itself: a name, a colour and a logo of its own.

use serde::{Deserialize, Serialize};

use crate::field::{self, Checked};
use crate::id::PictureId;
use crate::rpc::RpcError;

/// How a server shows itself. What is left out is Folkmoot's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct Branding {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Hue of its accent colour, in degrees of OKLCH; lightness and chroma are the client's, so that
    /// every hue can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accent: Option<u16>,
    /// Its logo, which `GET /api/v1/logo/{id}` answers; another logo has another id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo: Option<PictureId>,
}

/// A new name and colour; the logo is sent by `PUT /api/v1/admin/logo`. What is left out becomes
/// Folkmoot's own again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct BrandingUpdate {
    /// The server's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Hue of its accent colour, in degrees of OKLCH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accent: Option<u16>,
}

impl Checked for BrandingUpdate {
    fn check(&self) -> Result<(), RpcError> {
        field::optional(&self.name, |name| field::server_name("branding.name", name))?;
        field::optional(&self.accent, |hue| field::hue("branding.accent", *hue))
    }
}
