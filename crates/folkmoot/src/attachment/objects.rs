//! The bytes of files, behind the interface of an object store. The file system is the one that is
//! built in.
//!
//! A file has its final name only once all of it is on disk, synced; what is half written has a `#`
//! in its name, which the next start removes.

use std::future::ready;
use std::io;
use std::path::Path as FilePath;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, Result, WriteMultipart,
};

use crate::storage::{AttachmentId, PictureId};

const FILES: &str = "files";
const THUMBNAILS: &str = "thumbnails";
const PORTRAITS: &str = "portraits";
/// Bytes gathered before they are written.
const CHUNK_BYTES: usize = 256 * 1024;

/// Which bytes of an attachment or a user.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Object {
    File(AttachmentId),
    Thumbnail(AttachmentId),
    /// What a user shows beside the name.
    Portrait(PictureId),
}

impl Object {
    /// The name under which its bytes are kept.
    pub(crate) fn name(self) -> String {
        match self {
            Self::File(id) => format!("{FILES}/{id}"),
            Self::Thumbnail(id) => format!("{THUMBNAILS}/{id}"),
            Self::Portrait(id) => format!("{PORTRAITS}/{id}"),
        }
    }

    fn path(self) -> Path {
        Path::from(self.name())
    }
}

#[derive(Debug)]
pub(crate) struct Objects(Arc<dyn ObjectStore>);

impl Objects {
    /// Opens a directory, making it if it is missing. Where others write as well, what is half
    /// written may be theirs, and stays. Blocks.
    pub(crate) fn open(directory: &FilePath, is_shared: bool) -> io::Result<Self> {
        for part in [FILES, THUMBNAILS, PORTRAITS] {
            let part = directory.join(part);
            std::fs::create_dir_all(&part)?;
            if !is_shared {
                remove_unfinished(&part)?;
            }
        }
        let files = LocalFileSystem::new_with_prefix(directory)?.with_fsync(true);
        Ok(Self(Arc::new(files)))
    }

    /// Begins to write a file; nothing is to be seen of it before it is finished.
    pub(crate) async fn begin(&self, object: Object) -> Result<WriteMultipart> {
        let upload = self.0.put_multipart(&object.path()).await?;
        Ok(WriteMultipart::new_with_chunk_size(upload, CHUNK_BYTES))
    }

    /// Writes a small object at once.
    pub(crate) async fn put(&self, object: Object, bytes: Vec<u8>) -> Result<()> {
        self.0.put(&object.path(), bytes.into()).await.map(drop)
    }

    /// All of an object, in memory.
    pub(crate) async fn bytes(&self, object: Object) -> Result<Bytes> {
        self.0.get(&object.path()).await?.bytes().await
    }

    /// A part of an object, piece by piece.
    pub(crate) async fn read(
        &self,
        object: Object,
        range: std::ops::Range<u64>,
    ) -> Result<impl Stream<Item = Result<Bytes>> + Send + 'static> {
        let range = Some(GetRange::Bounded(range));
        let options = GetOptions { range, ..GetOptions::default() };
        Ok(self.0.get_opts(&object.path(), options).await?.into_stream())
    }

    /// The pictures that are there, whether anybody shows them or not.
    pub(crate) async fn portraits(&self) -> Result<Vec<PictureId>> {
        let listed = self.0.list(Some(&Path::from(PORTRAITS)));
        // Of a name that is no id nothing is known, and it stays.
        let ids = listed.try_filter_map(|object| {
            let name = object.location.filename();
            ready(Ok(name.and_then(|name| name.parse::<PictureId>().ok())))
        });
        ids.try_collect().await
    }

    /// Removes all bytes of an attachment; what is gone already counts as removed.
    pub(crate) async fn remove(&self, id: AttachmentId) -> Result<()> {
        for object in [Object::Thumbnail(id), Object::File(id)] {
            self.remove_one(object).await?;
        }
        Ok(())
    }

    /// Removes an object; one that is gone already counts as removed.
    pub(crate) async fn remove_one(&self, object: Object) -> Result<()> {
        match self.0.delete(&object.path()).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Whether the disk is full: the one failure whose reason helps whoever uploads.
pub(crate) fn is_full(error: &Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::StorageFull) {
            return true;
        }
        source = error.source();
    }
    false
}

fn remove_unfinished(directory: &FilePath) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().contains('#') {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_other_failures_however_deep_it_lies() {
        let wrapped = |kind: io::ErrorKind| {
            let inner = Error::Generic { store: "files", source: Box::new(io::Error::from(kind)) };
            Error::Generic { store: "outer", source: Box::new(inner) }
        };
        assert!(is_full(&wrapped(io::ErrorKind::StorageFull)));
        assert!(!is_full(&wrapped(io::ErrorKind::PermissionDenied)));
    }
}
