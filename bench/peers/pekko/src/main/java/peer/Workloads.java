package peer;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import java.time.Duration;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.PoisonPill;
import org.apache.pekko.actor.Props;
import org.apache.pekko.pattern.Patterns;

/** The shared workloads: the same loops, stop of the clock and checks as bench/workloads in Rust. */
final class Workloads implements AutoCloseable {
  static final class NoSuchWorkload extends Exception {}

  /** Where messages are sent from: own threads, the actors' pool, or handlers of other actors. */
  private enum From {
    THREADS,
    TASKS,
    HANDLERS
  }

  private static final int SENDERS = 8;
  private static final int CLIENTS = 8;
  private static final int PUBLISHES = 8;
  private static final int LATENCIES_MAX = 8_000_000;
  private static final Duration ASK_TIMEOUT = Duration.ofMinutes(1);

  private final String name;
  private final Main.Budget budget;
  private final ActorSystem system = ActorSystem.create("peer");
  private final boolean bounded = "bounded".equals(System.getenv("MAILBOX"));

  Workloads(String name, Main.Budget budget) {
    this.name = name;
    this.budget = budget;
  }

  @Override
  public void close() {
    system.terminate();
  }

  void run() throws Exception {
    switch (name) {
      case "tell-8to1" -> tell(1, From.THREADS);
      case "tell-8to1-tasks" -> tell(1, From.TASKS);
      case "tell-8to1-actors" -> tell(1, From.HANDLERS);
      case "tell-8to8" -> tell(8, From.THREADS);
      case "tell-8to8-tasks" -> tell(8, From.TASKS);
      case "ask-1" -> askOne();
      case "ask-8" -> askEight();
      case "publish-1k" -> publish(1_000);
      case "publish-100k" -> publish(100_000);
      case "publish-1m" -> publish(1_000_000);
      case "actor-memory" -> memory();
      case "spawn", "stop" -> lifecycle();
      case "remote-tell" -> remoteTell();
      case "remote-ask" -> remoteAsk();
      default -> throw new NoSuchWorkload();
    }
  }

  private void print(String metric, String unit, double value, String note) {
    System.out.printf(
        "{\"system\":\"pekko\",\"workload\":\"%s\",\"metric\":\"%s\",\"unit\":\"%s\",\"value\":%s,\"note\":\"%s\"}%n",
        name, metric, unit, value, note);
  }

  private ActorRef counter(Board board, long batch) {
    return system.actorOf(
        Props.create(Actors.Counter.class, () -> new Actors.Counter(board, batch))
            .withDispatcher(bounded ? "bounded" : "unbounded"));
  }

  private ActorRef producer(ActorRef target) {
    return system.actorOf(
        Props.create(Actors.Producer.class, () -> new Actors.Producer(target))
            .withDispatcher(bounded ? "senders" : "unbounded"));
  }

  private List<ActorRef> counters(Board board, int count, long batch) {
    board.started.expect(count);
    board.stopped.expect(count);
    var counters = new ArrayList<ActorRef>(count);
    for (int i = 0; i < count; i++) counters.add(counter(board, batch));
    return counters;
  }

  /** Repeats a batch, first to warm up, then measured; the median in nanoseconds. */
  private double median(LongSupplier batch) {
    for (long begun = System.nanoTime(); System.nanoTime() - begun < budget.warmUpNs(); ) {
      batch.getAsLong();
    }
    var measured = new ArrayList<Long>();
    long begun = System.nanoTime();
    while (measured.isEmpty() || System.nanoTime() - begun < budget.secondsNs()) {
      measured.add(batch.getAsLong());
    }
    measured.sort(null);
    return measured.get(measured.size() / 2);
  }

  private void tell(int targets, From from) throws NoSuchWorkload {
    // A task that blocks for room would take the thread that makes it.
    if (bounded && from == From.TASKS) throw new NoSuchWorkload();
    long perSender = budget.messages() / SENDERS;
    if (perSender == 0) throw new IllegalArgumentException("--messages must be at least 8");
    var board = new Board();
    var counters = counters(board, targets, perSender * SENDERS / targets);
    board.started.await();
    var producers = new ArrayList<ActorRef>();
    for (int i = 0; i < SENDERS; i++) producers.add(producer(counters.get(i % targets)));
    double elapsed =
        median(
            () -> {
              board.sum.set(0);
              board.handled.expect(targets);
              long begun =
                  switch (from) {
                    case THREADS -> threads(counters, perSender);
                    case TASKS -> tasks(counters, perSender);
                    case HANDLERS -> burst(producers, perSender);
                  };
              long ended = board.handled.await();
              checkSum(board, SENDERS * (perSender * (perSender - 1) / 2));
              return ended - begun;
            });
    print("rate", "M/s", perSender * SENDERS * 1000 / elapsed, "");
  }

  private static long burst(List<ActorRef> producers, long count) {
    long begun = System.nanoTime();
    for (var producer : producers) producer.tell(new Actors.Burst(count), ActorRef.noSender());
    return begun;
  }

  private static long threads(List<ActorRef> counters, long count) {
    var ready = new CyclicBarrier(SENDERS + 1);
    var go = new CyclicBarrier(SENDERS + 1);
    for (int i = 0; i < SENDERS; i++) {
      var target = counters.get(i % counters.size());
      var thread =
          new Thread(
              () -> {
                pass(ready);
                pass(go);
                sendAll(target, count);
              });
      thread.start();
    }
    pass(ready);
    // Before the second barrier: after it this thread may wait for a core while others send.
    long begun = System.nanoTime();
    pass(go);
    return begun;
  }

  private long tasks(List<ActorRef> counters, long count) {
    var pool = system.dispatchers().lookup("unbounded");
    long begun = System.nanoTime();
    for (int i = 0; i < SENDERS; i++) {
      var target = counters.get(i % counters.size());
      pool.execute(() -> sendAll(target, count));
    }
    return begun;
  }

  private static void sendAll(ActorRef target, long count) {
    for (long number = 0; number < count; number++) {
      target.tell(new Actors.Add(number), ActorRef.noSender());
    }
  }

  private static void pass(CyclicBarrier barrier) {
    try {
      barrier.await();
    } catch (Exception error) {
      throw new IllegalStateException("a sender did not reach the barrier", error);
    }
  }

  private static void checkSum(Board board, long expected) {
    if (board.sum.get() != expected) {
      throw new IllegalStateException(
          "handlers added up to " + board.sum.get() + " instead of " + expected);
    }
  }

  private long ask(ActorRef to) {
    try {
      var reply = Patterns.ask(to, new Actors.Ask(1), ASK_TIMEOUT);
      return (Long) reply.toCompletableFuture().get();
    } catch (Exception error) {
      throw new IllegalStateException("an ask failed", error);
    }
  }

  private void askOne() {
    var target = counters(new Board(), 1, Long.MAX_VALUE).get(0);
    long asks = 0;
    for (long begun = System.nanoTime(); System.nanoTime() - begun < budget.warmUpNs(); asks++) {
      ask(target);
    }
    var latencies = new long[LATENCIES_MAX];
    int count = 0;
    long sum = 0, begun = System.nanoTime();
    for (long last = begun; last - begun < budget.secondsNs() && count < LATENCIES_MAX; count++) {
      sum = ask(target);
      long now = System.nanoTime();
      latencies[count] = now - last;
      last = now;
    }
    asks += count;
    if (sum != asks) {
      throw new IllegalStateException("the last reply was " + sum + " after " + asks + " asks");
    }
    Arrays.sort(latencies, 0, count);
    print("p50", "ns", latencies[(int) (count * 0.50)], "");
    print("p99", "ns", latencies[(int) (count * 0.99)], "");
  }

  private void remoteTell() throws Exception {
    long each = budget.messages() / Remote.TELLERS;
    try (var remote = new Remote()) {
      for (int count : new int[] {1, Remote.TELLERS}) {
        var targets = remote.counters.subList(0, count);
        double elapsed = median(() -> remote.tellAll(targets, each));
        print("8to" + count, "M/s", each * Remote.TELLERS * 1000 / elapsed, "");
      }
    }
  }

  private void remoteAsk() throws Exception {
    try (var remote = new Remote()) {
      var target = remote.counters.get(0);
      for (long begun = System.nanoTime(); System.nanoTime() - begun < budget.warmUpNs(); ) {
        remote.take(target);
      }
      var latencies = new long[LATENCIES_MAX];
      int count = 0;
      long begun = System.nanoTime();
      for (long last = begun; last - begun < budget.secondsNs() && count < LATENCIES_MAX; count++) {
        remote.take(target);
        long now = System.nanoTime();
        latencies[count] = now - last;
        last = now;
      }
      Arrays.sort(latencies, 0, count);
      print("p50", "ns", latencies[(int) (count * 0.50)], "");
      print("p99", "ns", latencies[(int) (count * 0.99)], "");
      double elapsed = median(remote::askAll);
      print("64-askers", "1/s", Remote.ASKERS * Remote.ASKS * 1e9 / elapsed, "");
    }
  }

  private void askEight() throws InterruptedException {
    var target = counters(new Board(), 1, Long.MAX_VALUE).get(0);
    var stop = new AtomicBoolean();
    var measured = new AtomicBoolean();
    long[][] counts = new long[CLIENTS][2];
    var clients = new ArrayList<Thread>();
    for (int i = 0; i < CLIENTS; i++) {
      long[] own = counts[i];
      var client =
          new Thread(
              () -> {
                while (!stop.get()) {
                  ask(target);
                  own[0]++;
                  if (measured.get()) own[1]++;
                }
              });
      client.start();
      clients.add(client);
    }
    Thread.sleep(budget.warmUpNs() / 1_000_000);
    long begun = System.nanoTime();
    measured.set(true);
    Thread.sleep(budget.secondsNs() / 1_000_000);
    measured.set(false);
    long elapsed = System.nanoTime() - begun;
    stop.set(true);
    for (var client : clients) client.join();
    long all = Arrays.stream(counts).mapToLong(own -> own[0]).sum();
    long counted = Arrays.stream(counts).mapToLong(own -> own[1]).sum();
    long sum = ask(target);
    if (sum != all + 1) {
      throw new IllegalStateException("the actor counted " + sum + " of " + (all + 1) + " asks");
    }
    print("rate", "M/s", counted * 1000.0 / elapsed, "");
  }

  private void publish(int subscribers) {
    var board = new Board();
    var group = counters(board, subscribers, PUBLISHES);
    board.started.await();
    for (var member : group) system.eventStream().subscribe(member, Actors.Add.class);
    double elapsed =
        median(
            () -> {
              board.sum.set(0);
              board.handled.expect(subscribers);
              long begun = System.nanoTime();
              for (long number = 1; number <= PUBLISHES; number++) {
                system.eventStream().publish(new Actors.Add(number));
              }
              long ended = board.handled.await();
              checkSum(board, subscribers * (PUBLISHES * (PUBLISHES + 1L) / 2));
              return ended - begun;
            });
    print("per-subscriber", "ns", elapsed / ((double) subscribers * PUBLISHES), "event stream");
  }

  private void lifecycle() {
    int actors = (int) budget.messages();
    double elapsed =
        median(
            () -> {
              var board = new Board();
              long begun = System.nanoTime();
              var counters = counters(board, actors, Long.MAX_VALUE);
              long spawned = board.started.await() - begun;
              begun = System.nanoTime();
              for (var counter : counters) counter.tell(PoisonPill.getInstance(), null);
              long stopped = board.stopped.await() - begun;
              return name.equals("spawn") ? spawned : stopped;
            });
    print(name, "ns", elapsed / actors, "");
  }

  /** Live heap after a collection: the resident set of a virtual machine shows its policy instead. */
  private void memory() {
    var early = spawnAndTell(1_000);
    long before = liveBytes();
    var counters = spawnAndTell((int) budget.messages());
    long after = liveBytes();
    if (early.size() + counters.size() != budget.messages() + 1_000) {
      throw new IllegalStateException("actors went missing");
    }
    // The benchmark's own state is 40 bytes per actor (header, three longs, one reference).
    double each = (after - before) / (double) budget.messages() - 40;
    print("resident", "bytes", each, "live heap after a collection");
  }

  private List<ActorRef> spawnAndTell(int actors) {
    var board = new Board();
    board.handled.expect(actors);
    var counters = counters(board, actors, 1);
    for (var counter : counters) counter.tell(new Actors.Add(1), ActorRef.noSender());
    board.handled.await();
    checkSum(board, actors);
    return counters;
  }

  private static long liveBytes() {
    System.gc();
    System.gc();
    var runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }
}
