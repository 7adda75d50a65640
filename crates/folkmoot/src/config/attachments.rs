//! The settings of files in messages.

use std::path::{Path, PathBuf};
use std::time::Duration;

use folkmoot_protocol::limits::ATTACHMENTS_MAX;
use serde::Deserialize;

/// What people send each other and no browser takes for a program: HTML, SVG and scripts are not
/// among them.
const TYPES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/avif",
    "image/heif",
    "image/bmp",
    "image/tiff",
    "audio/*",
    "video/*",
    "text/plain",
    "application/pdf",
    "application/zip",
    "application/gzip",
    "application/x-7z-compressed",
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/vnd.openxmlformats-officedocument.*",
    "application/vnd.oasis.opendocument.*",
];

/// A telephone in a tunnel comes back within that; who is away for longer begins anew.
const PIECE_SILENCE: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AttachmentsSection {
    directory: Option<PathBuf>,
    file_bytes_max: u64,
    files_per_message_max: usize,
    user_bytes_max: u64,
    image_pixels_max: u64,
    unsent_s: u32,
    types: Vec<String>,
}

impl Default for AttachmentsSection {
    fn default() -> Self {
        Self {
            directory: None,
            // A minute of video from a telephone, or a long document.
            file_bytes_max: 25 * 1024 * 1024,
            files_per_message_max: ATTACHMENTS_MAX,
            user_bytes_max: 1024 * 1024 * 1024,
            // The largest photographs of common cameras; about 300 MiB while one is decoded.
            image_pixels_max: 40_000_000,
            // Somebody who loses the network in the evening sends in the morning.
            unsent_s: 24 * 60 * 60,
            types: TYPES.iter().map(|text| (*text).to_owned()).collect(),
        }
    }
}

/// How the server treats files in messages.
#[derive(Debug, Clone)]
pub(crate) struct AttachmentConfig {
    /// Where their bytes are.
    pub(crate) directory: PathBuf,
    /// Other nodes write there as well.
    pub(crate) is_shared: bool,
    pub(crate) file_bytes_max: u64,
    pub(crate) files_per_message_max: usize,
    /// Bytes of all files of one user.
    pub(crate) user_bytes_max: u64,
    /// Width times height of one image.
    pub(crate) image_pixels_max: u64,
    /// A file that no message names is removed after this time.
    pub(crate) unsent: Duration,
    /// A file that comes in pieces is given up when none has come for this time.
    pub(crate) piece_silence: Duration,
    /// Media types that are taken; `*` at the end stands for any rest.
    pub(crate) types: Vec<String>,
}

impl AttachmentsSection {
    /// What is wrong with a setting, if anything is.
    pub(super) fn problem(&self) -> Option<String> {
        (self.files_per_message_max > ATTACHMENTS_MAX).then(|| {
            format!("attachments.files_per_message_max is over the limit of {ATTACHMENTS_MAX}")
        })
    }

    pub(super) fn has_directory(&self) -> bool {
        self.directory.is_some()
    }

    pub(super) fn within(self, data: &Path) -> AttachmentConfig {
        AttachmentConfig {
            directory: self.directory.unwrap_or_else(|| data.join("attachments")),
            is_shared: false,
            file_bytes_max: self.file_bytes_max,
            files_per_message_max: self.files_per_message_max,
            user_bytes_max: self.user_bytes_max,
            image_pixels_max: self.image_pixels_max,
            unsent: Duration::from_secs(self.unsent_s.into()),
            piece_silence: PIECE_SILENCE,
            types: self.types,
        }
    }
}
