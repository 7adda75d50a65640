#[allow(clippy::unused_async)]
impl Relay {
    async fn frame(&mut self, frame: Frame, next: self::Next, top: super::Top) -> Frame {
        frame
    }
    pub(super) async fn forward(
        &mut self,
        to: Vec<ActorRef<Self>>,
        frames: [Frame; Self::LEN],
    ) {}
    pub(in super::super) async fn r#move(&mut self, r#type: <Self as Kinds>::Kind) {}
}
impl ::althing::Actor for Relay {
    const NAME: &'static str = "scopes";
}
/// The messages of `Relay`, one for each call.
#[allow(dead_code, unused_imports)]
pub(crate) mod relay_messages {
    use super::*;
    /// What `RelayCalls::frame` sends.
    pub(super) struct Frame {
        /// The call's `frame`.
        pub(super) frame: super::Frame,
        /// The call's `next`.
        pub(super) next: super::Next,
        /// The call's `top`.
        pub(super) top: super::super::Top,
    }
    /// What `RelayCalls::forward` sends.
    pub(in super::super) struct Forward {
        /// The call's `to`.
        pub(in super::super) to: Vec<ActorRef<Relay>>,
        /// The call's `frames`.
        pub(in super::super) frames: [super::Frame; <Relay>::LEN],
    }
    /// What `RelayCalls::move` sends.
    pub(in super::super::super) struct Move {
        /// The call's `type`.
        pub(in super::super::super) r#type: <Relay as Kinds>::Kind,
    }
}
impl ::althing::Handler<relay_messages::Frame> for Relay {
    type Reply = Frame;
    fn handle(
        &mut self,
        message: relay_messages::Frame,
        _ctx: &mut ::althing::Context<Self>,
    ) -> impl ::core::future::Future<Output = Self::Reply> + ::core::marker::Send {
        self.frame(message.frame, message.next, message.top)
    }
}
impl ::althing::Handler<relay_messages::Forward> for Relay {
    type Reply = ();
    fn handle(
        &mut self,
        message: relay_messages::Forward,
        _ctx: &mut ::althing::Context<Self>,
    ) -> impl ::core::future::Future<Output = Self::Reply> + ::core::marker::Send {
        self.forward(message.to, message.frames)
    }
}
impl ::althing::Handler<relay_messages::Move> for Relay {
    type Reply = ();
    fn handle(
        &mut self,
        message: relay_messages::Move,
        _ctx: &mut ::althing::Context<Self>,
    ) -> impl ::core::future::Future<Output = Self::Reply> + ::core::marker::Send {
        self.r#move(message.r#type)
    }
}
/// The calls that an `ActorRef<Relay>` takes.
#[allow(dead_code, private_bounds, private_interfaces)]
pub(crate) trait RelayCalls {
    /// Sends `relay_messages::Frame`.
    fn frame(
        &self,
        frame: Frame,
        next: self::Next,
        top: super::Top,
    ) -> ::althing::Call<'_, Relay, relay_messages::Frame, ::althing::Write>;
    /// Sends `relay_messages::Forward`.
    fn forward(
        &self,
        to: Vec<ActorRef<Relay>>,
        frames: [Frame; <Relay>::LEN],
    ) -> ::althing::Call<'_, Relay, relay_messages::Forward, ::althing::Write>;
    /// Sends `relay_messages::Move`.
    fn r#move(
        &self,
        r#type: <Relay as Kinds>::Kind,
    ) -> ::althing::Call<'_, Relay, relay_messages::Move, ::althing::Write>;
}
impl RelayCalls for ::althing::ActorRef<Relay> {
    fn frame(
        &self,
        frame: Frame,
        next: self::Next,
        top: super::Top,
    ) -> ::althing::Call<'_, Relay, relay_messages::Frame, ::althing::Write> {
        self.send(relay_messages::Frame {
            frame,
            next,
            top,
        })
    }
    fn forward(
        &self,
        to: Vec<ActorRef<Relay>>,
        frames: [Frame; <Relay>::LEN],
    ) -> ::althing::Call<'_, Relay, relay_messages::Forward, ::althing::Write> {
        self.send(relay_messages::Forward {
            to,
            frames,
        })
    }
    fn r#move(
        &self,
        r#type: <Relay as Kinds>::Kind,
    ) -> ::althing::Call<'_, Relay, relay_messages::Move, ::althing::Write> {
        self.send(relay_messages::Move { r#type })
    }
}
