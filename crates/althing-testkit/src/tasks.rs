//! The tasks of a world: who is ready, whose they are, and the seeded choice of the next one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use althing::Task;
use parking_lot::Mutex;

use crate::clock::Ground;
use crate::member::MemberId;
use crate::random::Random;

/// Id of the future that `World::run` was given.
pub(crate) const MAIN: TaskId = TaskId(0);

/// Names a task; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskId(pub(crate) u64);

#[derive(Default)]
pub(crate) struct Tasks {
    list: Mutex<List>,
    ready: Arc<Ready>,
}

/// Those who are ready to be polled.
type Ready = Mutex<Vec<Arc<Alarm>>>;

#[derive(Default)]
struct List {
    tasks: BTreeMap<TaskId, Place>,
    main: Option<Waker>,
    last_id: u64,
}

/// A task's place; the task itself is out while it is polled.
struct Place {
    task: Option<Task>,
    waker: Waker,
    /// Whose it is; `None` for the test's own.
    owner: Option<MemberId>,
    ground: Ground,
}

/// A task taken out to be polled.
pub(crate) struct Taken {
    pub(crate) task: Task,
    pub(crate) waker: Waker,
    pub(crate) ground: Ground,
}

/// Puts a task on the list of those who are ready, once however often it is woken.
struct Alarm {
    id: TaskId,
    is_listed: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_listed.swap(true, Ordering::Relaxed) {
            self.ready.lock().push(self.clone());
        }
    }
}

impl Tasks {
    /// Adds a task, which is ready at once.
    pub(crate) fn add(&self, task: Task, owner: Option<MemberId>, ground: Ground) {
        let mut list = self.list.lock();
        list.last_id += 1;
        let id = TaskId(list.last_id);
        let waker = self.waker(id);
        waker.wake_by_ref();
        list.tasks.insert(id, Place { task: Some(task), waker, owner, ground });
    }

    /// A waker for the main future, which is ready at once.
    pub(crate) fn begin_main(&self) {
        let waker = self.waker(MAIN);
        waker.wake_by_ref();
        self.list.lock().main = Some(waker);
    }

    /// The waker of the main future.
    pub(crate) fn main_waker(&self) -> Waker {
        self.list.lock().main.clone().expect("set when the main future began")
    }

    /// The next task to poll, by `random`; `None` if nobody is ready.
    pub(crate) fn choose(&self, random: &mut Random) -> Option<TaskId> {
        let mut ready = self.ready.lock();
        if ready.is_empty() {
            return None;
        }
        let index = random.below(ready.len());
        let alarm = ready.swap_remove(index);
        // Before the poll, so that what wakes it meanwhile lists it again.
        alarm.is_listed.store(false, Ordering::Relaxed);
        Some(alarm.id)
    }

    /// Takes a task out; `None` if it has ended.
    pub(crate) fn take(&self, id: TaskId) -> Option<Taken> {
        let mut list = self.list.lock();
        let place = list.tasks.get_mut(&id)?;
        let task = place.task.take()?;
        Some(Taken { task, waker: place.waker.clone(), ground: place.ground })
    }

    /// Puts a task back that waits; hands it back if its owner is gone meanwhile.
    pub(crate) fn put_back(&self, id: TaskId, task: Task) -> Result<(), Task> {
        match self.list.lock().tasks.get_mut(&id) {
            Some(place) => {
                place.task = Some(task);
                Ok(())
            }
            None => Err(task),
        }
    }

    /// Forgets a task that has ended.
    pub(crate) fn forget(&self, id: TaskId) {
        let forgotten = self.list.lock().tasks.remove(&id);
        drop(forgotten);
    }

    /// Removes the tasks of one owner, or all, and drops them in the order in which they were
    /// spawned.
    pub(crate) fn drop_those_of(&self, owner: Option<MemberId>) {
        let mut list = self.list.lock();
        let ids: Vec<TaskId> = list
            .tasks
            .iter()
            .filter(|(_, place)| owner.is_none() || place.owner == owner)
            .map(|(id, _)| *id)
            .collect();
        let gone: Vec<_> = ids.iter().filter_map(|id| list.tasks.remove(id)).collect();
        // Released before dropping: a future's drop may spawn.
        drop(list);
        drop(gone);
    }

    fn waker(&self, id: TaskId) -> Waker {
        let alarm = Alarm { id, is_listed: AtomicBool::new(false), ready: self.ready.clone() };
        Waker::from(Arc::new(alarm))
    }
}
