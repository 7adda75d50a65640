use althing::{Context, ReplyTo, actor};

struct Cart;

#[actor(name = "cart", mailbox = 3)]
impl Cart {
    async fn take(self) {}

    async fn look(&self, _ctx: &mut Context<Self>) {}

    async fn later(&mut self, _reply: ReplyTo<u8>) {}

    async fn stop(&mut self) {}

    #[rate_limit(per_second = 0)]
    async fn limited(&mut self) {}

    fn started(&mut self) {}
}

fn main() {}
