#[actor(name = "scopes")]
impl Relay {
    async fn frame(&mut self, frame: Frame, next: self::Next, top: super::Top) -> Frame {
        frame
    }

    pub(super) async fn forward(&mut self, to: Vec<ActorRef<Self>>, frames: [Frame; Self::LEN]) {}

    pub(in super::super) async fn r#move(&mut self, r#type: <Self as Kinds>::Kind) {}
}
