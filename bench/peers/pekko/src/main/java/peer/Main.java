package peer;

/**
 * The command line that every system under test speaks: WORKLOAD --messages N --seconds S. Exit
 * status 1 is a failed check, 2 a bad argument, 3 a workload this system does not have.
 */
public final class Main {
  private Main() {}

  record Budget(long messages, long secondsNs, long warmUpNs) {}

  /** The compilers of a virtual machine need seconds; every other system warms up for 0.3 s. */
  private static final double WARM_UP_SECONDS = 2.0;

  public static void main(String[] arguments) {
    String name = null;
    double messages = 2_000_000, seconds = 1, warmUp = WARM_UP_SECONDS;
    try {
      for (int i = 0; i < arguments.length; i++) {
        switch (arguments[i]) {
          case "--messages" -> messages = Double.parseDouble(arguments[++i]);
          case "--seconds" -> seconds = Double.parseDouble(arguments[++i]);
          case "--warmup" -> warmUp = Double.parseDouble(arguments[++i]);
          default -> name = arguments[i];
        }
      }
    } catch (NumberFormatException | ArrayIndexOutOfBoundsException error) {
      name = null;
    }
    if (name == null || messages < 1 || seconds < 0 || warmUp < 0) {
      System.err.println("usage: WORKLOAD --messages N --seconds S [--warmup S]");
      System.exit(2);
    }
    var budget = new Budget((long) messages, (long) (seconds * 1e9), (long) (warmUp * 1e9));
    try (var workloads = new Workloads(name, budget)) {
      workloads.run();
    } catch (Workloads.NoSuchWorkload error) {
      System.err.println("no workload " + name);
      System.exit(3);
    } catch (Exception error) {
      System.err.println("pekko " + name + ": " + error.getMessage());
      System.exit(1);
    }
    System.exit(0);
  }
}
