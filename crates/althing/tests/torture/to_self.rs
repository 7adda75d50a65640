//! What an actor has sent to itself: timers, the output of a future, the items of a stream.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use althing::Node;
use futures_util::Stream;
use tokio::time::Instant;

use crate::message::Message;
use crate::program::{Items, Op};
use crate::puppet::Alarm;
use crate::records::{DROPPED, KILLED, Known, LAST_WORD, Mail, PANICKED, Purpose};
use crate::scope::{Place, Scope};
use crate::world::{Draft, Task, World};

/// A message that comes once, by a timer that ends with its life, or by one that wakes the next.
pub(crate) fn after(scope: &mut Scope<'_>, purpose: Purpose, ticks: u16, ops: &[Op]) {
    let world = scope.world.clone();
    let delay = world.tick * u32::from(ticks);
    let known = Arc::new(scope.known());
    let Place::Exclusive(puppet, ctx) = &mut scope.place else { return };
    let mail = world.mail(Draft {
        target: puppet.slot,
        purpose,
        number: None,
        before: Some(known.sent_to(puppet.slot)),
        due: Some((Instant::now() + delay, puppet.life)),
    });
    if puppet.stops {
        mail.set(LAST_WORD);
    }
    let message = Message::new(&world, mail.clone(), known, ops.into());
    let id = match purpose {
        Purpose::Wake => ctx.wake_after(delay, message),
        _ => ctx.after(delay, message),
    };
    puppet.alarms.push(Alarm::Once(id, mail));
}

/// Messages of one life to itself, sent by a sender of their own.
struct Origin {
    world: Arc<World>,
    slot: usize,
    life: u32,
    is_last: bool,
    sender: Option<usize>,
    known: Known,
    ops: Arc<[Op]>,
}

impl Origin {
    fn of(scope: &Scope<'_>, ops: &[Op]) -> Option<Self> {
        let (sender, known) = scope.fork();
        let Place::Exclusive(puppet, _) = &scope.place else { return None };
        let (slot, life, is_last) = (puppet.slot, puppet.life, puppet.stops);
        let world = scope.world.clone();
        Some(Self { world, slot, life, is_last, sender, known, ops: ops.into() })
    }

    fn message(&mut self, purpose: Purpose) -> Message {
        let before = self.known.sent_to(self.slot);
        let number = self.sender.map(|sender| (sender, self.known.count(self.slot, sender)));
        let mail = self.world.mail(Draft {
            target: self.slot,
            purpose,
            number,
            before: Some(before),
            due: Some((Instant::now(), self.life)),
        });
        if self.is_last {
            mail.set(LAST_WORD);
        }
        Message::new(&self.world, mail, Arc::new(self.known.clone()), self.ops.clone())
    }
}

pub(crate) fn pipe(scope: &mut Scope<'_>, ticks: u16, ops: &[Op]) {
    let Some(mut origin) = Origin::of(scope, ops) else { return };
    let Place::Exclusive(_, ctx) = &mut scope.place else { return };
    let pause = origin.world.tick * u32::from(ticks);
    let (node, under_way) = (ctx.node(), origin.world.task());
    ctx.pipe(
        async move {
            node.sleep(pause).await;
        },
        move |()| {
            let message = origin.message(Purpose::Pipe);
            // From here on the message is followed by itself.
            drop(under_way);
            message
        },
    );
}

pub(crate) fn attach(scope: &mut Scope<'_>, (items, ticks): (Items, u16), ops: &[Op]) {
    let Some(mut origin) = Origin::of(scope, ops) else { return };
    let Place::Exclusive(_, ctx) = &mut scope.place else { return };
    let world = origin.world.clone();
    let mut stream = Coming {
        left: items,
        pause: world.tick * u32::from(ticks),
        node: ctx.node(),
        waits: None,
        last: None,
        _under_way: (items != Items::Never).then(|| world.task()),
        _alive: Attached::new(&world),
        world,
    };
    let last = stream.last_seen();
    ctx.attach(stream, move |()| {
        let message = origin.message(Purpose::Item);
        *last.lock() = Some(message.mail.clone());
        message
    });
}

/// A stream whose items have no content; it sees that it is asked for one at a time.
struct Coming {
    left: Items,
    pause: Duration,
    node: Node,
    waits: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    last: Option<Seen>,
    world: Arc<World>,
    _under_way: Option<Task>,
    _alive: Attached,
}

type Seen = Arc<parking_lot::Mutex<Option<Arc<Mail>>>>;

/// Counts a stream as alive.
struct Attached(Arc<World>);

impl Attached {
    fn new(world: &Arc<World>) -> Self {
        world.alive.streams.fetch_add(1, SeqCst);
        Self(world.clone())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.alive.streams.fetch_sub(1, SeqCst);
    }
}

impl Coming {
    /// Where the message of the last item is to be written down.
    fn last_seen(&mut self) -> Seen {
        self.last.get_or_insert_default().clone()
    }

    /// The handler of the item before has ended.
    fn check_last(&self) {
        let Some(mail) = self.last.as_ref().and_then(|last| last.lock().clone()) else { return };
        // Who asks for a failed handler's reply hears of it before its message is dropped.
        let may_be_late = self.world.causes(mail.target) & (PANICKED | KILLED) != 0
            || self.world.drop_panicked.load(SeqCst);
        if !mail.has(DROPPED) && !may_be_late {
            self.world.broken("a stream is asked for one item at a time", format!("{mail:?}"));
        }
    }
}

impl Stream for Coming {
    type Item = ();

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let this = &mut *self;
        let left = match this.left {
            Items::Never => return Poll::Pending,
            Items::Some(left) => left,
        };
        if this.waits.is_none() {
            this.check_last();
        }
        if left == 0 {
            return Poll::Ready(None);
        }
        let (node, pause) = (&this.node, this.pause);
        let waits = this.waits.get_or_insert_with(|| {
            let node = node.clone();
            Box::pin(async move { node.sleep(pause).await })
        });
        ready!(waits.as_mut().poll(cx));
        this.waits = None;
        this.left = Items::Some(left - 1);
        Poll::Ready(Some(()))
    }
}
