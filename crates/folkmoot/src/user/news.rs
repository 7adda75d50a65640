//! What rooms tell a user: memberships that begin and end, mentions. It belongs into the user's
//! stream, and nobody waits for an answer; so what cannot be stored, or not be asked of the room,
//! is kept and taken again a moment later. What the process forgets with its end is in the
//! guarantees.

use std::time::Duration;

use althing::{Context, Handler};
use folkmoot_protocol::chat::{Excerpt, UserEvent, UserView};
use folkmoot_protocol::rpc::ReadState;

use super::actor::{Acknowledge, User};
use super::state::{Membership, UserChange};
use super::view::room_view_of;
use super::view::{read_event, read_state};
use crate::room::view::Mention;
use crate::room::{AskedRoom, RoomError};
use crate::storage::record::LeaveReason;
use crate::storage::{RoomId, Seq};

/// News kept for later; a user with more of it than this while the disk is full loses the oldest.
const OWED_MAX: usize = 1_000;
/// How long to wait before the next attempt: about what a disk that is full stays full at least.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Something a room told.
#[derive(Debug, Clone)]
pub(super) enum News {
    Joined {
        room: RoomId,
        read_seq: Seq,
    },
    Left {
        room: RoomId,
        reason: LeaveReason,
    },
    Mentioned(Mention),
    Unmentioned {
        room: RoomId,
        seq: Seq,
    },
    Renamed(UserView),
    /// The user's own: a cursor that was acknowledged from memory.
    Read {
        room: RoomId,
        state: ReadState,
    },
}

/// Time to take news again.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakeAgain;

impl Handler<TakeAgain> for User {
    type Reply = ();

    async fn handle(&mut self, _: TakeAgain, ctx: &mut Context<Self>) {
        // What fails again is owed again, and with it what is behind it.
        for news in std::mem::take(&mut self.owed) {
            self.take(news, ctx).await;
        }
    }
}

impl News {
    /// What it is about: of one room, or of the user, the later news counts.
    fn room(&self) -> Option<RoomId> {
        match self {
            Self::Joined { room, .. }
            | Self::Left { room, .. }
            | Self::Unmentioned { room, .. }
            | Self::Read { room, .. } => Some(*room),
            Self::Mentioned(mention) => Some(mention.room),
            Self::Renamed(_) => None,
        }
    }
}

impl User {
    /// Takes news, behind what is owed of the same room: who has left and is back would be gone in
    /// the end.
    pub(super) async fn take(&mut self, news: News, ctx: &mut Context<Self>) {
        if let News::Unmentioned { room, seq } = news {
            self.forget_excerpt(room, seq);
        }
        if self.owed.iter().any(|owed| owed.room() == news.room()) {
            return self.owe(Some(news), ctx);
        }
        match news {
            News::Joined { room, read_seq } => self.take_joined(room, read_seq, ctx).await,
            News::Left { room, reason } => self.take_left(room, reason, ctx),
            News::Mentioned(mention) => self.take_mentioned(mention, ctx),
            News::Unmentioned { room, seq } => self.take_unmentioned(room, seq, ctx).await,
            News::Renamed(view) => self.take_renamed(view, ctx),
            News::Read { room, state } => self.take_read(room, state, ctx),
        }
    }

    /// Keeps news for later.
    pub(super) fn owe(&mut self, news: Option<News>, ctx: &mut Context<Self>) {
        let Some(news) = news else { return };
        if let News::Unmentioned { room, seq } = news {
            // Its text is nobody's to see any more.
            let before = self.owed.len();
            self.owed.retain(
                |owed| !matches!(owed, News::Mentioned(one) if one.room == room && one.seq == seq),
            );
            if self.owed.len() < before {
                return;
            }
        }
        if self.owed.is_empty() {
            ctx.after(AGAIN_AFTER, TakeAgain);
        }
        if self.owed.len() >= OWED_MAX {
            tracing::warn!(user = %self.id, "too much news waits for the disk, the oldest is lost");
            self.owed.remove(0);
        }
        self.owed.push(news);
    }

    async fn take_joined(&mut self, room: RoomId, read_seq: Seq, ctx: &mut Context<Self>) {
        let news = News::Joined { room, read_seq };
        let change = match self.state().map(|state| state.room_added(room, read_seq)) {
            Ok(Some(change)) => change,
            // Loaded after the fact, and so known already; the devices still have to hear of it.
            Ok(None) => UserChange::Read { room, seq: read_seq },
            Err(_) => return,
        };
        let joined = || Membership { read_seq, ..Membership::default() };
        let known = self.state().ok().and_then(|state| state.rooms.get(room)).cloned();
        let mut membership = known.unwrap_or_else(joined);
        membership.read_to(read_seq);
        let summary = match AskedRoom::new(&self.ports, room).summary(self.id).await {
            Ok(Ok(summary)) => summary,
            // Sent away again meanwhile, which is the next news.
            Ok(Err(RoomError::NoSuchRoom | RoomError::Refused(_))) => return,
            Ok(Err(error)) => return self.not_now(news, &error, ctx),
            Err(error) => return self.not_now(news, &error, ctx),
        };
        let mut view = room_view_of(self.ports.streams(), &summary, &membership).await;
        // What people said is kept in one place, where it can be erased.
        view.last = None;
        let event = UserEvent::RoomAdded { room: Box::new(view) };
        self.append(change, &event, Acknowledge::News(news), ctx);
    }

    fn take_left(&mut self, room: RoomId, reason: LeaveReason, ctx: &mut Context<Self>) {
        // It would outlive the room if that is deleted; who comes back begins behind it.
        self.unsaved.remove(&room);
        if let Ok(Some(change)) = self.state().map(|state| state.room_removed(room)) {
            let event = UserEvent::RoomRemoved { room, reason: reason.into() };
            self.append(change, &event, Acknowledge::News(News::Left { room, reason }), ctx);
        }
    }

    fn take_mentioned(&mut self, mention: Mention, ctx: &mut Context<Self>) {
        let Ok(state) = self.state() else { return };
        if state.blocked.contains(&mention.by) {
            return;
        }
        let Some(change) = state.mentioned(mention.room, mention.seq) else { return };
        let news = News::Mentioned(mention.clone());
        let event = UserEvent::Mention(Excerpt {
            room: mention.room,
            seq: mention.seq,
            user: mention.by,
            name: mention.name,
            excerpt: mention.excerpt,
            at: mention.at,
        });
        self.append(change, &event, Acknowledge::News(news), ctx);
    }

    /// The text goes, which the devices may still recover from memory.
    fn forget_excerpt(&mut self, room: RoomId, seq: Seq) {
        self.stream.redact(|event: &mut UserEvent| match event {
            UserEvent::Mention(known) if known.room == room && known.seq == seq => {
                known.excerpt.clear();
                true
            }
            _ => false,
        });
    }

    /// The badge goes.
    async fn take_unmentioned(&mut self, room: RoomId, seq: Seq, ctx: &mut Context<Self>) {
        let Ok(Some(change)) = self.state().map(|state| state.unmentioned(room, seq)) else {
            return;
        };
        let news = News::Unmentioned { room, seq };
        let summary = match AskedRoom::new(&self.ports, room).summary(self.id).await {
            Ok(Ok(summary)) => summary,
            Ok(Err(RoomError::NoSuchRoom | RoomError::Refused(_))) => return,
            Ok(Err(error)) => return self.not_now(news, &error, ctx),
            Err(error) => return self.not_now(news, &error, ctx),
        };
        let mut known = self.state().ok().and_then(|state| state.rooms.get(room)).cloned();
        let Some(known) = &mut known else { return };
        known.mentions.remove(seq);
        let state = read_state(known, &summary);
        let event = read_event(room, &state);
        self.append(change, &event, Acknowledge::News(news), ctx);
    }

    fn take_renamed(&mut self, view: UserView, ctx: &mut Context<Self>) {
        let news = News::Renamed(view.clone());
        let UserView { id, name, display_name, picture, status, .. } = view;
        let event = UserEvent::Profile { user: id, name, display_name, picture, status };
        self.append(UserChange::Profile, &event, Acknowledge::News(news), ctx);
    }

    pub(super) fn take_read(&mut self, room: RoomId, state: ReadState, ctx: &mut Context<Self>) {
        let event = read_event(room, &state);
        // It may have moved on meanwhile, or the user may have left the room.
        let is_behind = |membership: &Membership| membership.read_seq <= state.read_seq;
        if self.state().is_ok_and(|known| known.rooms.get(room).is_some_and(is_behind)) {
            let change = UserChange::Read { room, seq: state.read_seq };
            let news = News::Read { room, state };
            self.append(change, &event, Acknowledge::News(news), ctx);
        }
    }

    fn not_now(&mut self, news: News, error: &dyn std::fmt::Display, ctx: &mut Context<Self>) {
        tracing::debug!(user = %self.id, %error, "news is taken again in a moment");
        self.owe(Some(news), ctx);
    }
}
