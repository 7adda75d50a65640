package peer;

import com.typesafe.config.ConfigFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;
import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.ExtendedActorSystem;
import org.apache.pekko.actor.Props;
import org.apache.pekko.pattern.Patterns;

/**
 * {@code remote-tell} and {@code remote-ask}: threads here tell and ask actors of another process, by
 * Artery over TCP on 127.0.0.1. Messages are {@code Long}, for which Pekko has a serializer.
 */
final class Remote implements AutoCloseable {
  static final int TELLERS = 8;
  static final int ASKERS = 64;
  static final int ASKS = 500;
  private static final Duration ASK_TIMEOUT = Duration.ofMinutes(1);
  /** Asks how much was added since the last time; what is added is above. */
  private static final Long TAKE = 0L;

  static final class Counter extends AbstractActor {
    private long told;

    @Override
    public Receive createReceive() {
      return receiveBuilder().match(Long.class, this::hear).build();
    }

    private void hear(Long number) {
      if (!number.equals(TAKE)) {
        told += number;
        return;
      }
      getSender().tell(told, ActorRef.noSender());
      told = 0;
    }
  }

  private final ActorSystem here = system();
  private final Process there;
  final List<ActorRef> counters = new ArrayList<>();

  Remote() throws Exception {
    var java = ProcessHandle.current().info().command().orElse("java");
    var path = System.getProperty("java.class.path");
    there =
        new ProcessBuilder(java, "-XX:+UseParallelGC", "-cp", path, "peer.Remote")
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    var said = new BufferedReader(new InputStreamReader(there.getInputStream())).readLine();
    for (int n = 0; n < TELLERS; n++) {
      var actor = here.actorSelection(said + "/user/counter-" + n).resolveOne(ASK_TIMEOUT);
      counters.add(actor.toCompletableFuture().get());
    }
  }

  /** The other process: says where it is, and ends with its input. */
  public static void main(String[] arguments) throws Exception {
    var system = system();
    for (int n = 0; n < TELLERS; n++) {
      var counter = Props.create(Counter.class).withDispatcher("unbounded");
      system.actorOf(counter, "counter-" + n);
    }
    System.out.println(((ExtendedActorSystem) system).provider().getDefaultAddress());
    while (System.in.read() >= 0) {}
    System.exit(0);
  }

  private static ActorSystem system() {
    return ActorSystem.create("remote", ConfigFactory.load("remote"));
  }

  @Override
  public void close() {
    there.destroyForcibly();
    here.terminate();
  }

  /** Nanoseconds until each of {@code targets} has answered that it has handled all. */
  long tellAll(List<ActorRef> targets, long each) {
    long begun = System.nanoTime();
    together(TELLERS, n -> {
      var target = targets.get(n % targets.size());
      for (long left = each; left > 0; left--) {
        target.tell(1L, ActorRef.noSender());
      }
    });
    long told = 0;
    for (var target : targets) {
      told += take(target);
    }
    if (told != each * TELLERS) {
      throw new IllegalStateException(told + " of " + each * TELLERS + " messages were handled");
    }
    return System.nanoTime() - begun;
  }

  long askAll() {
    long begun = System.nanoTime();
    together(ASKERS, n -> {
      for (int left = ASKS; left > 0; left--) {
        take(counters.get(n % counters.size()));
      }
    });
    return System.nanoTime() - begun;
  }

  long take(ActorRef target) {
    try {
      return (Long) Patterns.ask(target, TAKE, ASK_TIMEOUT).toCompletableFuture().get();
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  private static void together(int count, IntConsumer work) {
    var threads = new ArrayList<Thread>();
    for (int n = 0; n < count; n++) {
      int number = n;
      var thread = new Thread(() -> work.accept(number));
      thread.start();
      threads.add(thread);
    }
    try {
      for (var thread : threads) {
        thread.join();
      }
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }
}
