#[actor(name = "chat.room", crate = crate::althing)]
impl<S, C: Clock> Room<S, C>
where
    S: Store + Send + Sync + 'static,
    S::Record: Send,
    C: Send + Sync + 'static,
{
    pub async fn open(store: S) -> Self {
        Self { store }
    }

    #[rate_limit(per_second = 10, burst = 20)]
    #[restrict(Self::may_append)]
    #[stash_unless(Self::is_loaded)]
    pub async fn append(&mut self, record: S::Record) -> u64 {
        self.store.append(record)
    }

    #[restrict(Self::may_look)]
    pub(crate) async fn len(&self, _ctx: &Context<Self>) -> usize {
        self.store.len()
    }

    #[delayed]
    #[cfg(feature = "later")]
    async fn later(&mut self, ctx: &mut Context<Self>, n: u32, reply: ReplyTo<Vec<u32>>) {
        ctx.detach(async move { reply.send(vec![n]) });
    }

    #[event]
    async fn on_note(&mut self, event: &Published<Note>) {
        self.notes += event.payload.len();
    }

    #[skip]
    async fn ordinary(&self) {}

    async fn stopping(&mut self, reason: StopReason) {
        self.store.close(reason);
    }

    async fn terminated(&mut self, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}
