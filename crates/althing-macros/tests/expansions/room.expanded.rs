#[allow(clippy::unused_async)]
impl<S, C: Clock> Room<S, C>
where
    S: Store + Send + Sync + 'static,
    S::Record: Send,
    C: Send + Sync + 'static,
{
    pub async fn open(store: S) -> Self {
        Self { store }
    }
    pub async fn append(&mut self, record: S::Record) -> u64 {
        self.store.append(record)
    }
    pub(crate) async fn len(&self, _ctx: &Context<Self>) -> usize {
        self.store.len()
    }
    #[cfg(feature = "later")]
    async fn later(
        &mut self,
        ctx: &mut Context<Self>,
        n: u32,
        reply: ReplyTo<Vec<u32>>,
    ) {
        ctx.detach(async move { reply.send(vec![n]) });
    }
    async fn on_note(&mut self, event: &Published<Note>) {
        self.notes += event.payload.len();
    }
    async fn ordinary(&self) {}
    async fn stopping(&mut self, reason: StopReason) {
        self.store.close(reason);
    }
    async fn terminated(&mut self, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}
impl<S, C: Clock> crate::althing::Actor for Room<S, C>
where
    S: Store + Send + Sync + 'static,
    S::Record: Send,
    C: Send + Sync + 'static,
{
    const NAME: &'static str = "chat.room";
    fn stopping(
        &mut self,
        _ctx: &mut crate::althing::Context<Self>,
        reason: crate::althing::StopReason,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        Self::stopping(self, reason)
    }
    fn terminated(
        &mut self,
        ctx: &mut crate::althing::Context<Self>,
        _other: crate::althing::Terminated,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        Self::terminated(self, ctx)
    }
}
/// The messages of `Room`, one for each call.
#[allow(dead_code, unused_imports)]
pub mod room_messages {
    use super::*;
    /// What `RoomCalls::append` sends.
    pub struct Append<S>
    where
        S: Store + Send + Sync + 'static,
        S::Record: Send,
    {
        /// The call's `record`.
        pub record: S::Record,
    }
    /// What `RoomCalls::len` sends.
    pub(crate) struct Len;
    #[cfg(feature = "later")]
    /// What `RoomCalls::later` sends.
    pub(super) struct Later {
        /// The call's `n`.
        pub(super) n: u32,
    }
}
impl<S, C: Clock> crate::althing::Handler<room_messages::Append<S>> for Room<S, C>
where
    S: Store + Send + Sync + 'static,
    S::Record: Send,
    C: Send + Sync + 'static,
{
    type Reply = u64;
    fn admit(
        &mut self,
        message: &room_messages::Append<S>,
        ctx: &mut crate::althing::Context<Self>,
    ) -> crate::althing::Admission {
        if let ::core::result::Result::Err(reason) = Self::may_append(self, message) {
            return crate::althing::Admission::Reject(
                crate::althing::Rejection::restricted(reason),
            );
        }
        if !Self::is_loaded(self) {
            return crate::althing::Admission::Stash;
        }
        let per_second = crate::althing::Rate::of(10u32, &*self);
        let burst = crate::althing::Rate::of(20u32, &*self);
        if let ::core::result::Result::Err(reason) = ctx
            .take_permit("append", per_second, burst)
        {
            return crate::althing::Admission::Reject(reason);
        }
        crate::althing::Admission::Run
    }
    fn handle(
        &mut self,
        message: room_messages::Append<S>,
        _ctx: &mut crate::althing::Context<Self>,
    ) -> impl ::core::future::Future<Output = Self::Reply> + ::core::marker::Send {
        self.append(message.record)
    }
}
impl<S, C: Clock> crate::althing::ReadHandler<room_messages::Len> for Room<S, C>
where
    S: Store + Send + Sync + 'static,
    S::Record: Send,
    C: Send + Sync + 'static,
{
    type Reply = usize;
    fn admit(
        &self,
        message: &room_messages::Len,
        _ctx: &crate::althing::Context<Self>,
    ) -> crate::althing::Admission {
        if let ::core::result::Result::Err(reason) = Self::may_look(self, message) {
            return crate::althing::Admission::Reject(
                crate::althing::Rejection::restricted(reason),
            );
        }
        crate::althing::Admission::Run
    }
    fn read(
        &self,
        _message: room_messages::Len,
        ctx: &crate::althing::Context<Self>,
    ) -> impl ::core::future::Future<Output = Self::Reply> + ::core::marker::Send {
        self.len(ctx)
    }
}
impl<S, C: Clock> crate::althing::Receives<room_messages::Len> for Room<S, C>
where
    S: Store + Send + Sync + 'static,
    S::Record: Send,
    C: Send + Sync + 'static,
{
    type Reply = usize;
    type Way = crate::althing::Read;
}
#[cfg(feature = "later")]
impl<S, C: Clock> crate::althing::DelayedHandler<room_messages::Later> for Room<S, C>
where
    S: Store + Send + Sync + 'static,
    S::Record: Send,
    C: Send + Sync + 'static,
{
    type Reply = Vec<u32>;
    fn handle(
        &mut self,
        message: room_messages::Later,
        reply: crate::althing::ReplyTo<Self::Reply>,
        ctx: &mut crate::althing::Context<Self>,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        self.later(ctx, message.n, reply)
    }
}
#[cfg(feature = "later")]
impl<S, C: Clock> crate::althing::Receives<room_messages::Later> for Room<S, C>
where
    S: Store + Send + Sync + 'static,
    S::Record: Send,
    C: Send + Sync + 'static,
{
    type Reply = Vec<u32>;
    type Way = crate::althing::Delayed;
}
impl<S, C: Clock> crate::althing::EventHandler<Note> for Room<S, C>
where
    S: Store + Send + Sync + 'static,
    S::Record: Send,
    C: Send + Sync + 'static,
{
    fn event(
        &mut self,
        event: &crate::althing::Published<Note>,
        _ctx: &mut crate::althing::Context<Self>,
    ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
        Self::on_note(self, event)
    }
}
/// The calls that an `ActorRef<Room>` takes.
#[allow(dead_code, private_bounds, private_interfaces)]
pub trait RoomCalls<S, C: Clock>
where
    S: Store + Send + Sync + 'static,
    S::Record: Send,
    C: Send + Sync + 'static,
{
    /// Sends `room_messages::Append`.
    fn append(
        &self,
        record: S::Record,
    ) -> crate::althing::Call<
        '_,
        Room<S, C>,
        room_messages::Append<S>,
        crate::althing::Write,
    >;
    /// Sends `room_messages::Len`.
    fn len(
        &self,
    ) -> crate::althing::Call<'_, Room<S, C>, room_messages::Len, crate::althing::Read>;
    /// Sends `room_messages::Later`.
    #[cfg(feature = "later")]
    fn later(
        &self,
        n: u32,
    ) -> crate::althing::Call<
        '_,
        Room<S, C>,
        room_messages::Later,
        crate::althing::Delayed,
    >;
}
impl<S, C: Clock> RoomCalls<S, C> for crate::althing::ActorRef<Room<S, C>>
where
    S: Store + Send + Sync + 'static,
    S::Record: Send,
    C: Send + Sync + 'static,
{
    fn append(
        &self,
        record: S::Record,
    ) -> crate::althing::Call<
        '_,
        Room<S, C>,
        room_messages::Append<S>,
        crate::althing::Write,
    > {
        self.send(room_messages::Append { record })
    }
    fn len(
        &self,
    ) -> crate::althing::Call<'_, Room<S, C>, room_messages::Len, crate::althing::Read> {
        self.send(room_messages::Len)
    }
    #[cfg(feature = "later")]
    fn later(
        &self,
        n: u32,
    ) -> crate::althing::Call<
        '_,
        Room<S, C>,
        room_messages::Later,
        crate::althing::Delayed,
    > {
        self.send(room_messages::Later { n })
    }
}
