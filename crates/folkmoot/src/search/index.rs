//! The index on disk: which words stand in which messages. Derived data: whatever is wrong with it,
//! it is thrown away and made anew from the store.
//!
//! How far it has come (an lsn) is committed with it, so a crash neither skips nor doubles. No
//! text is kept, only words. All calls block: those that write belong on the index's own thread, a
//! search on the node's pool.
//!
//! An index that was there is checked after the start, as long as a disk takes to read all of it.
//! Until then nothing of it is merged: spoilt bytes would get a sum of their own.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tantivy::directory::error::OpenReadError;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, NoMergePolicy};
use tantivy::query::{AllQuery, BooleanQuery, Occur, PhraseQuery, Query, RangeQuery, TermQuery};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, Term};

use super::newest::{Bounds, Newest};
use super::place::Place;
use super::query::Wanted;
use super::text::{Kind, Unit, units};
use crate::storage::{ChangedMessage, Lsn, RoomId, Seq, UserId};

/// Changes with the fields and with how text is read: an index of another format is made anew.
const FORMAT: u32 = 1;
/// So few rooms are looked up in the index; more are only filtered.
const ROOM_TERMS_MAX: usize = 32;
/// A segment is rewritten when this much of it is deleted, so that deleted words leave the disk.
const DELETED_RATIO_MAX: f32 = 0.2;
/// One rewrites segments at a time: it may take its time, sockets may not wait for it.
const MERGE_THREADS: usize = 1;
/// Times that a check begins anew because files that it was to read were replaced meanwhile.
const CHECKS_MAX: u32 = 10;

/// What went wrong with the index; it can be made anew.
pub(crate) type IndexError = tantivy::TantivyError;

/// What to look for, where.
#[derive(Debug, Clone)]
pub(crate) struct Lookup {
    pub(crate) wanted: Vec<Wanted>,
    /// Any of them is the author; `None`: anybody.
    pub(crate) authors: Option<Vec<UserId>>,
    pub(crate) bounds: Bounds,
}

pub(crate) struct Index {
    index: tantivy::Index,
    reader: IndexReader,
    fields: Fields,
    heap_bytes: usize,
    /// Which data directory it belongs to.
    epoch: String,
    /// `None` after a failure, until it is opened again.
    writer: Mutex<Option<IndexWriter>>,
    /// All messages changed by records up to here can be found.
    mark: AtomicU64,
    /// Whether all that was there when it was opened is what was written.
    is_checked: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Fields {
    /// Room and number in one, to replace a message by.
    id: Field,
    room: Field,
    seq: Field,
    user: Field,
    at: Field,
    text: Field,
}

impl Index {
    /// Opens the index of a store that has come to `applied`; makes it anew if it is not usable.
    pub(crate) fn open(
        path: &Path,
        epoch: &str,
        applied: Lsn,
        heap_bytes: usize,
    ) -> Result<Self, IndexError> {
        if path.exists() {
            // Of bytes that the disk has spoilt, some are errors and others a panic.
            match catch_unwind(|| Self::open_existing(path, epoch, heap_bytes)) {
                // Ahead of the store: the database is an older copy.
                Ok(Ok(index)) if index.mark() <= applied => return Ok(index),
                Ok(Ok(index)) => tracing::warn!(mark = %index.mark(), "the search index is ahead"),
                Ok(Err(error)) => tracing::warn!(%error, "the search index is not usable"),
                Err(_) => tracing::warn!("the search index cannot be read"),
            }
            tracing::info!("the search index is made anew");
            std::fs::remove_dir_all(path)?;
        }
        std::fs::create_dir_all(path)?;
        let (schema, _) = schema();
        let index = tantivy::Index::create_in_dir(path, schema)?;
        let index = Self::with(index, epoch, heap_bytes, Lsn(0))?;
        index.trust();
        Ok(index)
    }

    fn open_existing(path: &Path, epoch: &str, heap_bytes: usize) -> Result<Self, IndexError> {
        let index = tantivy::Index::open_in_dir(path)?;
        let payload = index.load_metas()?.payload.unwrap_or_default();
        let mark = payload.strip_prefix(&format!("{FORMAT} {epoch} "));
        let mark = mark.and_then(|mark| mark.parse().ok()).map(Lsn);
        let is_empty = payload.is_empty() && index.searchable_segment_ids()?.is_empty();
        let mark = mark.or_else(|| is_empty.then_some(Lsn(0))).ok_or_else(|| {
            IndexError::SchemaError(format!("it is of another format or store: {payload:?}"))
        })?;
        if index.schema() != schema().0 {
            return Err(IndexError::SchemaError("it has other fields".to_owned()));
        }
        Self::with(index, epoch, heap_bytes, mark)
    }

    fn with(
        index: tantivy::Index,
        epoch: &str,
        heap_bytes: usize,
        mark: Lsn,
    ) -> Result<Self, IndexError> {
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let index = Self {
            index,
            reader,
            fields: schema().1,
            heap_bytes,
            epoch: epoch.to_owned(),
            writer: Mutex::new(None),
            mark: AtomicU64::new(mark.0),
            is_checked: AtomicBool::new(false),
        };
        *index.writer.lock() = Some(index.open_writer()?);
        Ok(index)
    }

    fn open_writer(&self) -> Result<IndexWriter, IndexError> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .num_merge_threads(MERGE_THREADS)
            .memory_budget_per_thread(self.heap_bytes)
            .build();
        let writer = self.index.writer_with_options(options)?;
        self.let_merge(&writer);
        Ok(writer)
    }

    fn let_merge(&self, writer: &IndexWriter) {
        if !self.is_checked() {
            writer.set_merge_policy(Box::new(NoMergePolicy));
            return;
        }
        let mut merges = LogMergePolicy::default();
        merges.set_del_docs_ratio_before_merge(DELETED_RATIO_MAX);
        writer.set_merge_policy(Box::new(merges));
    }

    pub(crate) fn is_checked(&self) -> bool {
        self.is_checked.load(Ordering::Acquire)
    }

    /// Reads all of it, and says whether it is what was written. Spoilt bytes fail the searches that
    /// come upon them, or hide what is there.
    pub(crate) fn check(&self) -> Result<(), IndexError> {
        for _ in 0..CHECKS_MAX {
            let read = catch_unwind(AssertUnwindSafe(|| self.index.validate_checksum()));
            match read.unwrap_or_else(|_| Err(unreadable())) {
                Ok(spoilt) => {
                    let Some(file) = spoilt.into_iter().next() else { return Ok(()) };
                    let text = format!("{} is not what was written", file.display());
                    return Err(IndexError::SystemError(text));
                }
                // Whoever writes meanwhile removes what nothing is left of.
                Err(IndexError::OpenReadError(OpenReadError::FileDoesNotExist(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Err(IndexError::SystemError("files of it are missing".to_owned()))
    }

    /// It was checked: from now on it is merged.
    pub(crate) fn trust(&self) {
        let writer = self.writer.lock();
        self.is_checked.store(true, Ordering::Release);
        if let Some(writer) = &*writer {
            self.let_merge(writer);
        }
    }

    /// It is spoilt: forgets all of it, to be filled from the beginning.
    pub(crate) fn clear(&self) -> Result<(), IndexError> {
        // What was not committed goes, too, with a writer that may have failed.
        let mut writer = self.writer.lock();
        *writer = None;
        let open = writer.insert(self.open_writer()?);
        open.delete_all_documents()?;
        let mut prepared = open.prepare_commit()?;
        prepared.set_payload(&format!("{FORMAT} {} {}", self.epoch, Lsn(0)));
        prepared.commit()?;
        self.reader.reload()?;
        self.mark.store(0, Ordering::Release);
        drop(writer);
        self.trust();
        Ok(())
    }

    /// How far it has come.
    pub(crate) fn mark(&self) -> Lsn {
        Lsn(self.mark.load(Ordering::Acquire))
    }

    /// Notes that records up to `mark` changed no message besides those committed.
    pub(crate) fn pass(&self, mark: Lsn) {
        self.mark.fetch_max(mark.0, Ordering::AcqRel);
    }

    /// Takes changes in; they are found after the next commit.
    pub(crate) fn add(&self, changes: &[ChangedMessage]) -> Result<(), IndexError> {
        let mut writer = self.writer.lock();
        let writer = match &mut *writer {
            Some(writer) => writer,
            closed => closed.insert(self.open_writer()?),
        };
        for change in changes {
            let id = id(change.room, change.seq);
            if !change.is_new {
                writer.delete_term(Term::from_field_bytes(self.fields.id, &id));
            }
            let Some(text) = &change.text else { continue };
            let mut document = TantivyDocument::default();
            document.add_bytes(self.fields.id, &id);
            document.add_u64(self.fields.room, change.room.as_u64());
            document.add_u64(self.fields.seq, change.seq.as_u64());
            document.add_u64(self.fields.user, change.user.as_u64());
            document.add_u64(self.fields.at, change.at.as_u64());
            let tokens = tokens(&units(text));
            let words = PreTokenizedString { text: String::new(), tokens };
            document.add_pre_tokenized_text(self.fields.text, words);
            writer.add_document(document)?;
        }
        Ok(())
    }

    /// Takes all messages of a room out; they are gone after the next commit.
    pub(crate) fn forget_room(&self, room: RoomId) -> Result<(), IndexError> {
        let mut writer = self.writer.lock();
        let writer = match &mut *writer {
            Some(writer) => writer,
            closed => closed.insert(self.open_writer()?),
        };
        writer.delete_term(Term::from_field_u64(self.fields.room, room.as_u64()));
        Ok(())
    }

    /// Takes some messages of a room out; they are gone after the next commit.
    pub(crate) fn forget_messages(&self, room: RoomId, seqs: Range<u64>) -> Result<(), IndexError> {
        let mut writer = self.writer.lock();
        let writer = match &mut *writer {
            Some(writer) => writer,
            closed => closed.insert(self.open_writer()?),
        };
        for seq in seqs {
            let id = id(room, Seq::from_u64(seq));
            writer.delete_term(Term::from_field_bytes(self.fields.id, &id));
        }
        Ok(())
    }

    /// Makes what was added durable and found, together with how far that is.
    pub(crate) fn commit(&self, mark: Lsn) -> Result<(), IndexError> {
        let mut writer = self.writer.lock();
        let Some(open) = &mut *writer else { return Ok(()) };
        let mut prepared = open.prepare_commit()?;
        prepared.set_payload(&format!("{FORMAT} {} {mark}", self.epoch));
        prepared.commit()?;
        self.reader.reload()?;
        self.mark.store(mark.0, Ordering::Release);
        Ok(())
    }

    /// After a failure: forgets what was not committed; returns how far the rest is.
    pub(crate) fn roll_back(&self) -> Lsn {
        // The lock file goes with the writer; the next `add` opens another one.
        *self.writer.lock() = None;
        let payload = self.index.load_metas().ok().and_then(|metas| metas.payload);
        let mark = payload.as_deref().and_then(|text| text.rsplit(' ').next()?.parse().ok());
        let mark = mark.unwrap_or(0);
        self.mark.store(mark, Ordering::Release);
        Lsn(mark)
    }

    /// The newest hits within the bounds.
    pub(crate) fn search(&self, lookup: Lookup) -> Result<Vec<Place>, IndexError> {
        let query = self.query(&lookup);
        let collector = Newest(Arc::new(lookup.bounds));
        // Of bytes that the disk has spoilt, some are errors and others a panic.
        let found = AssertUnwindSafe(|| self.reader.searcher().search(&*query, &collector));
        catch_unwind(found).unwrap_or_else(|_| Err(unreadable()))
    }

    fn query(&self, lookup: &Lookup) -> Box<dyn Query> {
        let mut clauses: Vec<Box<dyn Query>> =
            lookup.wanted.iter().map(|wanted| self.clause(wanted)).collect();
        if let Some(authors) = &lookup.authors {
            let ids = authors.iter().map(|author| author.as_u64());
            clauses.push(any_of(self.fields.user, ids));
        }
        if lookup.bounds.rooms.len() <= ROOM_TERMS_MAX {
            let ids = lookup.bounds.rooms.iter().map(|room| room.as_u64());
            clauses.push(any_of(self.fields.room, ids));
        }
        match clauses.is_empty() {
            true => Box::new(AllQuery),
            false => {
                let all = clauses.into_iter().map(|clause| (Occur::Must, clause)).collect();
                Box::new(BooleanQuery::new(all))
            }
        }
    }

    fn clause(&self, wanted: &Wanted) -> Box<dyn Query> {
        let field = self.fields.text;
        match wanted {
            Wanted::Prefix(prefix) => {
                let last = format!("{prefix}{}", char::MAX);
                let term =
                    |text: &str| std::ops::Bound::Included(Term::from_field_text(field, text));
                Box::new(RangeQuery::new(term(prefix), term(&last)))
            }
            Wanted::Phrase(units) => {
                let mut terms: Vec<(usize, Term)> = terms_of(units)
                    .map(|(position, text)| (position, Term::from_field_text(field, &text)))
                    .collect();
                match terms.len() {
                    1 => Box::new(TermQuery::new(terms.remove(0).1, IndexRecordOption::Basic)),
                    _ => Box::new(PhraseQuery::new_with_offset(terms)),
                }
            }
        }
    }
}

impl std::fmt::Debug for Index {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Index").field("mark", &self.mark()).finish_non_exhaustive()
    }
}

fn unreadable() -> IndexError {
    IndexError::SystemError("it cannot be read".to_owned())
}

fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let fields = Fields {
        id: schema.add_bytes_field("id", INDEXED),
        room: schema.add_u64_field("room", INDEXED | FAST),
        seq: schema.add_u64_field("seq", FAST),
        user: schema.add_u64_field("user", INDEXED),
        at: schema.add_u64_field("at", FAST),
        text: schema.add_text_field("text", TextOptions::default().set_indexing_options(words)),
    };
    (schema.build(), fields)
}

fn id(room: RoomId, seq: Seq) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&room.as_u64().to_be_bytes());
    id[8..].copy_from_slice(&seq.as_u64().to_be_bytes());
    id
}

fn any_of(field: Field, numbers: impl Iterator<Item = u64>) -> Box<dyn Query> {
    let term = |number| {
        let term = Term::from_field_u64(field, number);
        let query: Box<dyn Query> = Box::new(TermQuery::new(term, IndexRecordOption::Basic));
        (Occur::Should, query)
    };
    Box::new(BooleanQuery::new(numbers.map(term).collect()))
}

/// The terms of a text. Characters of unspaced scripts stand there alone, for searches of one, and
/// together with their follower: pairs are far rarer than characters.
fn tokens(units: &[Unit]) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(units.len());
    for (position, unit) in units.iter().enumerate() {
        let token = |text| Token { position, text, ..Token::default() };
        tokens.push(token(unit.text.clone()));
        if let Some(pair) = pair(units, position) {
            tokens.push(token(pair));
        }
    }
    tokens
}

/// The terms to find units by, with their distance from the first: pairs where there are some.
fn terms_of(units: &[Unit]) -> impl Iterator<Item = (usize, String)> {
    units.iter().enumerate().filter_map(|(position, unit)| match pair(units, position) {
        Some(pair) => Some((position, pair)),
        // The pair before it has it already.
        None if unit.kind == Kind::Continued && position > 0 => None,
        None => Some((position, unit.text.clone())),
    })
}

fn pair(units: &[Unit], position: usize) -> Option<String> {
    let next = units.get(position + 1).filter(|next| next.kind == Kind::Continued)?;
    Some(format!("{}{}", units[position].text, next.text))
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
