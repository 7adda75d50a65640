//! One actor: asked, told, and woken by its own timer. `cargo run --example hello`.

use std::time::Duration;

use althing::{ActorError, AskError, Context, Node, actor};

#[derive(Default)]
struct Greeter {
    greeted: u32,
}

#[actor(name = "example.greeter", derive(Clone))]
impl Greeter {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        ctx.every(Duration::from_millis(50), greeter_messages::Tick);
        Ok(())
    }

    /// A write: nothing else runs in this actor meanwhile.
    async fn greet(&mut self, name: String) -> String {
        self.greeted += 1;
        format!("Hello, {name}!")
    }

    /// A read: it may overlap with other reads.
    async fn greeted(&self) -> u32 {
        self.greeted
    }

    async fn tick(&mut self) {
        println!("greeted so far: {}", self.greeted);
    }
}

#[tokio::main]
async fn main() -> Result<(), AskError> {
    let node = Node::builder("hello").build();
    let greeter = node.spawn(Greeter::default());

    // Ask: the reply, or a typed error within five seconds.
    println!("{}", greeter.greet("world".into()).await?);

    // Tell: waits for room in the mailbox, not for the handler.
    for name in ["Ada", "Grace", "Edsger"] {
        greeter.greet(name.into()).tell().await.expect("the greeter is running");
    }

    // The timer ticks beside all that.
    node.sleep(Duration::from_millis(120)).await;
    println!("greeted in all: {}", greeter.greeted().await?);

    let report = node.shutdown(Duration::from_secs(1)).await;
    println!("stopped {} actor, killed {:?}", report.stopped, report.killed);
    Ok(())
}
