package peer;

import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.UntypedAbstractActor;

/**
 * The benchmark's actors and messages. They use the classic API without a receive builder: typed
 * behaviours and builders both add a dispatch to each message.
 */
final class Actors {
  private Actors() {}

  record Add(long number) {}

  record Ask(long number) {}

  record Burst(long count) {}

  /** Adds the numbers and notices the last message of a batch. */
  static final class Counter extends UntypedAbstractActor {
    private final Board board;
    private final long batch;
    private long left;
    private long sum;

    Counter(Board board, long batch) {
      this.board = board;
      this.batch = batch;
      this.left = batch;
    }

    @Override
    public void preStart() {
      board.started.arrive();
    }

    @Override
    public void postStop() {
      board.stopped.arrive();
    }

    @Override
    public void onReceive(Object message) {
      if (message instanceof Add add) {
        add(add.number());
      } else if (message instanceof Ask ask) {
        getSender().tell(add(ask.number()), getSelf());
      } else {
        unhandled(message);
      }
    }

    private long add(long number) {
      sum += number;
      if (--left > 0) return sum;
      long total = sum;
      sum = 0;
      left = batch;
      board.sum.addAndGet(total);
      board.handled.arrive();
      return total;
    }
  }

  /** Tells its target the numbers below a count, from inside one handler. */
  static final class Producer extends AbstractActor {
    private final ActorRef target;

    Producer(ActorRef target) {
      this.target = target;
    }

    @Override
    public Receive createReceive() {
      return receiveBuilder().match(Burst.class, this::burst).build();
    }

    private void burst(Burst burst) {
      for (long number = 0; number < burst.count(); number++) {
        target.tell(new Add(number), getSelf());
      }
    }
  }
}
