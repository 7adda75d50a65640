//! Reminders of actors that have moved, or whose node has died: they come in time on the next node,
//! which has not seen them set.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, ActorId, Context, Node, NodeBuilder, Start, Wire, actor};
use althing_store::{Courier, Memory, Reminder, Saved, State, Store, When};
use althing_testkit::{Bridge, World};

/// How late a reminder may be whose actor lives on another node than before.
const LATE_MAX: Duration = Duration::from_secs(5);

#[derive(Default, Wire)]
struct Rings {
    names: Vec<String>,
}

impl State for Rings {}

struct Sleeper {
    saved: Saved<Rings>,
}

#[actor(name = "test.moved-sleeper", wire, durable = saved)]
impl Sleeper {
    #[wire(skip)]
    async fn set(&mut self, name: String, after: Duration, ctx: &mut Context<Self>) {
        let me = ctx.address();
        let set = self.saved.post().remind(&name, When::After(after), |it| me.ring(it));
        set.expect("it can be written down");
    }

    #[wire(skip)]
    async fn cancel(&mut self, name: String) {
        self.saved.post().cancel(&name);
    }

    async fn ring(&mut self, reminder: Reminder) {
        self.saved.once(&reminder.request, |rings| rings.names.push(reminder.name));
    }

    async fn rings(&self) -> Vec<String> {
        self.saved.names.clone()
    }
}

type Opening = Pin<Box<dyn Future<Output = Result<Sleeper, ActorError>> + Send>>;

fn opening(store: Arc<dyn Store>) -> impl Fn(Start<Sleeper>) -> Opening + Send + Sync {
    move |start| {
        let store = store.clone();
        Box::pin(async move { Ok(Sleeper { saved: Saved::load(store, &start).await? }) })
    }
}

fn town(builder: NodeBuilder, memory: &Arc<Memory>) -> Node {
    let courier = Arc::new(Courier::new(memory.clone()));
    let node = builder.actor(opening(courier.clone())).build();
    courier.start(&node);
    node
}

fn id() -> ActorId {
    ActorId::named("test.moved-sleeper", "bob")
}

async fn rings(node: &Node) -> Vec<String> {
    node.get::<Sleeper>("bob").rings().await.expect("it runs")
}

async fn set(node: &Node, name: &str, after: Duration) {
    node.get::<Sleeper>("bob").set(name.to_owned(), after).await.expect("it is set");
}

#[test]
fn a_reminder_comes_in_time_where_its_actor_has_moved_to() {
    for seed in 0..20 {
        let (world, bridge, memory) = (World::new(seed), Bridge::new(), Arc::new(Memory::new()));
        let one = town(world.node("one").cluster(bridge.end()), &memory);
        let two = town(world.node("two").cluster(bridge.end()), &memory);
        world.run(async {
            bridge.settle(&id(), &one);
            // Long after the first look of the other node at the store.
            two.sleep(Duration::from_secs(5)).await;
            set(&one, "tea", Duration::from_secs(6)).await;
            set(&one, "never", Duration::from_secs(6)).await;
            bridge.carry(&id(), &two).await;
            two.get::<Sleeper>("bob").cancel("never".to_owned()).await.expect("it runs");
            set(&two, "soon", Duration::from_secs(1)).await;
            two.sleep(Duration::from_secs(5)).await;
            assert_eq!(rings(&two).await, ["soon"], "seed {seed}");
            two.sleep(LATE_MAX).await;
            assert_eq!(rings(&two).await, ["soon", "tea"], "seed {seed}");
            // Back where the reminder was set, which has forgotten it.
            set(&two, "late", Duration::from_secs(4)).await;
            bridge.carry(&id(), &one).await;
            one.sleep(Duration::from_secs(4) + LATE_MAX).await;
            assert_eq!(rings(&one).await, ["soon", "tea", "late"], "seed {seed}");
        });
    }
}

#[test]
fn a_reminder_comes_in_time_after_the_death_of_its_actors_node() {
    for seed in 0..20 {
        let (world, bridge, memory) = (World::new(seed), Bridge::new(), Arc::new(Memory::new()));
        let one = town(world.node("one").cluster(bridge.end()), &memory);
        let two = town(world.node("two").cluster(bridge.end()), &memory);
        world.run(async {
            bridge.settle(&id(), &one);
            two.sleep(Duration::from_secs(5)).await;
            set(&one, "tea", Duration::from_secs(6)).await;
            bridge.lose(&one);
            world.crash(&one);
            bridge.settle(&id(), &two);
            two.sleep(Duration::from_secs(6) + LATE_MAX).await;
            assert_eq!(rings(&two).await, ["tea"], "seed {seed}");
        });
    }
}
