//! Messages whose own code panics when they have to go to another node after all.

use std::time::Duration;

use althing::wire::{Depth, WireField};
use althing::{AskError, Context, Wire, WireError, actor};
use althing_testkit::{Bridge, World};

const UNWRITABLE: u64 = 17;

/// A weight that panics when it is that one.
struct Weight(u64);

impl Wire for Weight {
    fn encode(&self, out: &mut Vec<u8>) {
        assert_ne!(self.0, UNWRITABLE, "on purpose");
        self.0.encode(out);
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        u64::decode_within(bytes, depth).map(Self)
    }
}

impl WireField for Weight {}

struct Carrier {
    carries: u64,
}

#[actor(name = "test.carrier", wire)]
impl Carrier {
    async fn rest(&mut self, ctx: &mut Context<Self>) {
        ctx.node().sleep(Duration::from_secs(1)).await;
    }

    async fn load(&mut self, weight: Weight) {
        self.carries += weight.0;
    }

    async fn carries(&mut self) -> u64 {
        self.carries
    }
}

#[test]
fn what_cannot_be_encoded_takes_nothing_along_when_its_actor_moves() {
    let (world, bridge) = (World::new(1), Bridge::new());
    let here = |name| {
        let builder = world.node(name).cluster(bridge.end());
        builder.actor(async |_| Ok(Carrier { carries: 0 })).build()
    };
    let (one, two) = (here("one"), here("two"));
    world.run(async {
        let carrier = one.get::<Carrier>("a");
        carrier.rest().tell().await.expect("there is room");
        for weight in [1, UNWRITABLE, 2] {
            carrier.load(Weight(weight)).tell().await.expect("there is room");
        }
        let asker = carrier.clone();
        let asked = world.spawn(async move { asker.load(Weight(UNWRITABLE)).await });
        // All of them wait behind the first.
        one.sleep(Duration::from_millis(100)).await;
        bridge.carry(&carrier.id(), &two).await;
        let asked = asked.await.expect_err("it was not carried over");
        assert!(
            matches!(&asked, AskError::NotUnderstood(_, why) if why.contains("`load`")),
            "{asked}"
        );
        assert_eq!(carrier.carries().await, Ok(3));
    });
}
