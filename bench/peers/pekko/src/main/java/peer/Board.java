package peer;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Where the actors of one run report to; the last arrival stamps the time itself. */
final class Board {
  /** The longest wait for one batch; a slower system has lost messages or hangs. */
  private static final long WAIT_MAX_S = 120;

  final Countdown handled = new Countdown();
  final Countdown started = new Countdown();
  final Countdown stopped = new Countdown();
  final AtomicLong sum = new AtomicLong();

  static final class Countdown {
    private final AtomicInteger left = new AtomicInteger();
    private volatile CountDownLatch done;
    private volatile long endedNs;

    void expect(int members) {
      done = new CountDownLatch(1);
      left.set(members);
    }

    void arrive() {
      if (left.decrementAndGet() == 0) {
        endedNs = System.nanoTime();
        done.countDown();
      }
    }

    /** Waits for the last arrival and returns its time. */
    long await() {
      try {
        if (done.await(WAIT_MAX_S, TimeUnit.SECONDS)) return endedNs;
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      }
      throw new IllegalStateException(left.get() + " arrivals missing after 120 s");
    }
  }
}
