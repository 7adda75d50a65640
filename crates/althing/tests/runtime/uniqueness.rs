//! A name has one actor at a time: not two, also while one ends and while the directory forgets it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::support::{On, flex, later, node, settle, soon, within};
use althing::{Actor, ActorError, ActorRef, Context, Handler, Node, StopReason, WeakRef};
use parking_lot::Mutex;

/// Takes a while to stop.
struct Named;

struct Touch;
struct Unload;

impl Actor for Named {
    const NAME: &'static str = "test.named";

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

impl Handler<Touch> for Named {
    type Reply = ();

    async fn handle(&mut self, _: Touch, _: &mut Context<Self>) {}
}

impl Handler<Unload> for Named {
    type Reply = ();

    async fn handle(&mut self, _: Unload, ctx: &mut Context<Self>) {
        ctx.passivate();
    }
}

#[test]
fn a_name_is_taken_until_the_last_hook_of_its_actor_has_ended() {
    within(On::PausedTime, async {
        let node = node();
        let first = node.spawn_named("a", Named).unwrap();
        first.send(Touch).await.unwrap();
        let stopped = first.stop();
        settle().await;
        assert!(first.is_active(), "it is in its last hook");
        assert!(node.spawn_named("a", Named).is_err());
        soon("the stop", stopped).await;
        assert!(node.spawn_named("a", Named).is_ok());
    });
}

#[test]
fn who_is_started_under_a_name_lives_where_its_addresses_lead() {
    within(On::PausedTime, async {
        let node = node();
        let early = node.get::<Named>("a");
        let named = node.spawn_named("a", Named).expect("nobody lives there");
        assert_eq!(early, named);
        assert_eq!(early.send(Touch).await, Ok(()));
    });
}

#[test]
fn a_name_is_free_when_its_actor_has_stopped_and_taken_while_it_is_unloaded() {
    within(On::PausedTime, async {
        let node = Node::builder("test").actor(async |_| Ok(Named)).build();
        let named = node.spawn_named("a", Named).expect("nobody lives there");
        named.stop().await;
        let again = node.spawn_named("a", Named).expect("nobody lives there any more");
        assert_eq!(named, again);
        named.send(Unload).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!named.is_active());
        let error = node.spawn_named("a", Named).expect_err("it may come back");
        assert!(error.to_string().contains("test.named/a"), "{error}");
    });
}

/// Counts how many of it live at once.
struct Lone {
    living: Arc<AtomicU32>,
    /// Whether there were ever two.
    two: Arc<AtomicBool>,
}

struct End;

impl Actor for Lone {
    const NAME: &'static str = "test.lone";

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), ActorError> {
        if self.living.fetch_add(1, SeqCst) > 0 {
            self.two.store(true, SeqCst);
        }
        Ok(())
    }

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        tokio::task::yield_now().await;
        self.living.fetch_sub(1, SeqCst);
    }
}

impl Handler<End> for Lone {
    type Reply = ();

    async fn handle(&mut self, _: End, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

#[test]
fn a_name_that_many_start_stop_and_tell_at_once_has_one_actor_at_a_time() {
    within(On::Workers(3), async {
        let (living, two) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let lone = {
            let (living, two) = (living.clone(), two.clone());
            move || Lone { living: living.clone(), two: two.clone() }
        };
        let each = lone.clone();
        let rebuilding = Node::builder("test").actor(move |_| {
            let lone = each();
            async move { Ok(lone) }
        });
        for node in [node(), rebuilding.build()] {
            let tasks: Vec<_> = (0..4)
                .map(|who| tokio::spawn(start_and_stop(node.clone(), lone.clone(), who)))
                .collect();
            for task in tasks {
                soon("all of them", task).await.unwrap();
            }
            assert!(!two.load(SeqCst));
            node.shutdown(Duration::from_secs(5)).await;
            assert_eq!(living.load(SeqCst), 0);
        }
    });
}

async fn start_and_stop(node: Node, lone: impl Fn() -> Lone, who: u32) {
    for turn in 0..500 {
        let known = node.get::<Lone>("a");
        match (who + turn) % 4 {
            0 => known.stop().await,
            1 => _ = known.send(End).try_tell(),
            _ => {
                if let Ok(started) = node.spawn_named("a", lone()) {
                    started.send(End).try_tell().ok();
                }
            }
        }
    }
}

/// Upgrades the weak addresses that it is given, again and again, until one leads to an actor that
/// its node does not know.
struct Upgrader {
    name: Mutex<(String, Option<WeakRef<Named>>)>,
    /// Two addresses of one name that are not the same.
    two: Mutex<Option<[ActorRef<Named>; 2]>>,
    ends: AtomicBool,
}

impl Upgrader {
    fn run(&self, node: &Node) {
        while !self.ends.load(SeqCst) {
            let (key, weak) = self.name.lock().clone();
            let Some(weak) = weak else { continue };
            for _ in 0..50 {
                if let Some(held) = weak.upgrade() {
                    let known = node.get::<Named>(&key);
                    if known != held {
                        *self.two.lock() = Some([held, known]);
                        return;
                    }
                }
            }
        }
    }
}

/// The directory forgets a sleeper that nobody holds. Whoever gets hold of it in that moment must
/// not keep an actor that the directory does not know.
/// Stops with the second message.
struct Brief {
    told: u32,
    stopped: Arc<AtomicBool>,
}

struct Tell;

impl Actor for Brief {
    const NAME: &'static str = "test.brief";

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        self.stopped.store(true, SeqCst);
    }
}

impl Handler<Tell> for Brief {
    type Reply = ();

    async fn handle(&mut self, _: Tell, ctx: &mut Context<Self>) {
        self.told += 1;
        if self.told == 2 {
            ctx.stop();
        }
    }
}

/// The bundle in which a handler tells is still open, and nothing more is in it.
#[test]
fn a_name_is_free_once_its_actor_has_stopped_though_its_teller_goes_on() {
    within(On::Workers(2), async {
        let stopped = Arc::new(AtomicBool::new(false));
        let brief = |stopped: &Arc<AtomicBool>| Brief { told: 0, stopped: stopped.clone() };
        let of_kind = stopped.clone();
        let node = Node::builder("test")
            .actor(move |_| {
                let life = Brief { told: 0, stopped: of_kind.clone() };
                async { Ok(life) }
            })
            .build();
        let (on, first) = (node.clone(), node.get::<Brief>("a"));
        let telling = later(async move {
            for _ in 0..2 {
                first.send(Tell).try_tell().unwrap();
            }
            tokio::task::block_in_place(|| {
                while !stopped.load(SeqCst) || first.is_active() {
                    std::thread::yield_now();
                }
            });
            let second = on.spawn_named("a", brief(&stopped));
            let second = second.expect("nobody runs under the name");
            assert_eq!(second, first, "all addresses of a name lead to the same actor");
            // By the bundle, if it is still there.
            first.send(Tell).try_tell().unwrap();
            second.send(Tell).await.unwrap();
            2
        });
        let teller = flex(&node);
        let telling = teller.send(telling).timeout(Duration::from_secs(60));
        assert_eq!(soon("the teller", telling).await, Ok(2));
    });
}

#[test]
fn a_weak_address_never_leads_to_a_second_actor_of_a_name() {
    within(On::PausedTime, async {
        let node = Node::builder("test").actor(async |_| Ok(Named)).build();
        let upgrader = Arc::new(Upgrader {
            name: Mutex::default(),
            two: Mutex::default(),
            ends: AtomicBool::new(false),
        });
        let thread = std::thread::spawn({
            let (upgrader, node) = (upgrader.clone(), node.clone());
            move || upgrader.run(&node)
        });
        let begun = Instant::now();
        let mut names = 0;
        while begun.elapsed() < Duration::from_secs(3) && !thread.is_finished() {
            names += 1;
            let key = names.to_string();
            let weak = node.get::<Named>(&key).downgrade();
            *upgrader.name.lock() = (key, Some(weak));
            // A pass over the directory.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        upgrader.ends.store(true, SeqCst);
        thread.join().unwrap();
        let two = upgrader.two.lock().take();
        if let Some(two) = two {
            for named in &two {
                named.send(Touch).await.unwrap();
            }
            let active = two.iter().filter(|named| named.is_active()).count();
            panic!("{active} active actors of the name {:?} after {names} names", two[0].id());
        }
    });
}

mod same_names {
    use althing::{AskError, BuildError, Node, actor};

    pub(super) struct First;
    pub(super) struct Second;

    #[actor(name = "test.same")]
    impl First {
        async fn whoami(&self) -> u32 {
            1
        }
    }

    #[actor(name = "test.same")]
    impl Second {
        async fn whoami(&self) -> u32 {
            2
        }
    }

    #[tokio::test]
    async fn a_name_belongs_to_one_type_and_the_second_does_not_start() {
        let node = Node::builder("twins").build();
        assert_eq!(node.spawn(First).whoami().await, Ok(1));
        let second = node.spawn(Second);
        match second.whoami().await {
            Err(AskError::NotStarted(_, why)) => {
                let text = why.to_string();
                assert!(text.contains("First` and `"), "{text}");
                assert!(text.contains("Second` are both called `test.same`"), "{text}");
            }
            // It has ended by the time the message comes.
            Err(AskError::Stopped(_)) => {}
            other => panic!("{other:?}"),
        }
        let by_name = node.get::<Second>("a").whoami().await;
        assert!(matches!(by_name, Err(AskError::NotStarted(..))), "{by_name:?}");
        assert_eq!(node.spawn(First).whoami().await, Ok(1), "the first goes on");
    }

    #[tokio::test]
    async fn a_node_with_two_types_of_one_name_is_not_built() {
        let builder = Node::builder("twins").actor(async |_| Ok(First)).actor(async |_| Ok(Second));
        let refused = builder.try_build().expect_err("one name");
        assert!(matches!(&refused, BuildError::Kind(twice) if twice.name == "test.same"));
    }
}
