# Elixir (BEAM processes) under the shared workloads: the same loops, stop of the clock and checks as
# bench/workloads has for the Rust systems. Actors are plain processes with a receive loop, the
# fastest form: a GenServer adds a dispatch to each message.
#
#   elixir peer.exs on_heap|off_heap WORKLOAD --messages N --seconds S [--warmup S]
#
# The first argument is the message queue setting of the receiving processes.
# Exit status 1 is a failed check, 2 a bad argument, 3 a workload this system does not have.

defmodule Board do
  # Counts arrivals in an atomic; the last one stamps the time and tells the measuring process.
  def new, do: %{left: :atomics.new(3, []), sum: :atomics.new(1, signed: false), owner: self()}

  @slots %{handled: 1, started: 2, stopped: 3}
  def expect(board, what, members), do: :atomics.put(board.left, @slots[what], members)

  def handled(board, sum) do
    :atomics.add(board.sum, 1, sum)
    arrive(board, 1, :handled)
  end

  def started(board), do: arrive(board, 2, :started)
  def stopped(board), do: arrive(board, 3, :stopped)

  defp arrive(board, slot, what) do
    if :atomics.sub_get(board.left, slot, 1) == 0 do
      send(board.owner, {what, :erlang.monotonic_time(:nanosecond)})
    end
  end

  @wait_max_ms 120_000
  def wait(board, what) do
    receive do
      {^what, ended} -> ended
    after
      @wait_max_ms ->
        Peer.fail("#{:atomics.get(board.left, @slots[what])} #{what} missing after 120 s")
    end
  end
end

defmodule Counter do
  def start(board, batch, queue) do
    :erlang.spawn_opt(fn -> init(board, batch) end, message_queue_data: queue)
  end

  defp init(board, batch) do
    Board.started(board)
    loop(board, batch, batch, 0)
  end

  defp loop(board, batch, left, sum) do
    receive do
      {:add, number} when left > 1 ->
        loop(board, batch, left - 1, sum + number)

      {:add, number} ->
        Board.handled(board, sum + number)
        loop(board, batch, batch, 0)

      {:ask, from, ref, number} ->
        send(from, {ref, sum + number})
        loop(board, batch, left - 1, sum + number)

      :stop ->
        Board.stopped(board)
    end
  end
end

defmodule Producer do
  def start(target), do: spawn(fn -> loop(target) end)

  defp loop(target) do
    receive do
      {:burst, count} -> Client.tell_all(target, 0, count)
    end

    loop(target)
  end
end

defmodule Client do
  def tell_all(_, count, count), do: :ok

  def tell_all(target, number, count) do
    send(target, {:add, number})
    tell_all(target, number + 1, count)
  end

  def ask(target, number) do
    ref = make_ref()
    send(target, {:ask, self(), ref, number})

    receive do
      {^ref, sum} -> sum
    end
  end

  def ask_until(target, until, asks) do
    if :erlang.monotonic_time(:nanosecond) < until do
      ask(target, 1)
      ask_until(target, until, asks + 1)
    else
      asks
    end
  end

  def time_asks(target, last, until, latencies, _) when last < until do
    sum = ask(target, 1)
    now = :erlang.monotonic_time(:nanosecond)
    time_asks(target, now, until, [now - last | latencies], sum)
  end

  def time_asks(_, _, _, latencies, sum), do: {latencies, sum}

  # Flags: 1 is "measured part", 2 is "stop".
  def ask_while(target, flags, all, counted) do
    if :atomics.get(flags, 2) == 1 do
      {all, counted}
    else
      ask(target, 1)
      ask_while(target, flags, all + 1, counted + :atomics.get(flags, 1))
    end
  end
end

defmodule Peer do
  @senders 8
  @clients 8
  @publishes 8
  @never 0xFFFFFFFFFFFFFF

  def main([queue | arguments]) when queue in ["on_heap", "off_heap"] do
    {options, names, bad} =
      OptionParser.parse(arguments,
        strict: [messages: :integer, seconds: :float, warmup: :float]
      )

    with [] <- bad, [name] <- names do
      budget = %{
        messages: Keyword.get(options, :messages, 2_000_000),
        seconds: trunc(Keyword.get(options, :seconds, 1.0) * 1.0e9),
        warmup: trunc(Keyword.get(options, :warmup, 0.3) * 1.0e9),
        queue: String.to_atom(queue)
      }

      system = if queue == "off_heap", do: "elixir-off-heap", else: "elixir"
      for sample <- run(name, budget), do: print(system, name, sample)
    else
      _ -> usage()
    end
  end

  def main(_), do: usage()

  defp usage do
    IO.puts(:stderr, "usage: on_heap|off_heap WORKLOAD --messages N --seconds S [--warmup S]")
    System.halt(2)
  end

  def fail(reason) do
    IO.puts(:stderr, "elixir: #{reason}")
    System.halt(1)
  end

  defp print(system, workload, {metric, unit, value, note}) do
    IO.puts(
      ~s({"system":"#{system}","workload":"#{workload}","metric":"#{metric}",) <>
        ~s("unit":"#{unit}","value":#{value},"note":"#{note}"})
    )
  end

  defp run("tell-8to1", budget), do: tell(budget, 1, :senders)
  defp run("tell-8to1-actors", budget), do: tell(budget, 1, :producers)
  defp run("tell-8to8", budget), do: tell(budget, 8, :senders)
  defp run("ask-1", budget), do: ask_one(budget)
  defp run("ask-8", budget), do: ask_eight(budget)
  defp run("publish-1k", budget), do: publish(budget, 1_000)
  defp run("publish-100k", budget), do: publish(budget, 100_000)
  defp run("publish-1m", budget), do: publish(budget, 1_000_000)
  defp run("actor-memory", budget), do: memory(budget)
  defp run("spawn", budget), do: lifecycle(budget, :spawn)
  defp run("stop", budget), do: lifecycle(budget, :stop)
  defp run("remote-tell", budget), do: Remote.tell(budget.messages, &median(budget, &1))
  defp run("remote-ask", budget), do: Remote.ask(budget.seconds, &median(budget, &1))

  defp run(name, _) do
    IO.puts(:stderr, "no workload #{name}")
    System.halt(3)
  end

  # Repeats a batch, first to warm up, then measured; the median in nanoseconds.
  defp median(budget, batch) do
    repeat(batch, now() + budget.warmup, [])
    measured = repeat(batch, now() + budget.seconds, [batch.()])
    Enum.at(Enum.sort(measured), div(length(measured), 2))
  end

  defp repeat(batch, until, measured) do
    if now() < until, do: repeat(batch, until, [batch.() | measured]), else: measured
  end

  defp now, do: :erlang.monotonic_time(:nanosecond)

  defp tell(budget, targets, from) do
    per_sender = div(budget.messages, @senders)
    if per_sender == 0, do: fail("--messages must be at least #{@senders}")
    board = Board.new()
    Board.expect(board, :started, targets)
    per_target = div(per_sender * @senders, targets)
    counters = for _ <- 1..targets, do: Counter.start(board, per_target, budget.queue)
    Board.wait(board, :started)
    pairs = for i <- 0..(@senders - 1), do: Enum.at(counters, rem(i, targets))
    producers = Enum.map(pairs, &Producer.start/1)

    elapsed =
      median(budget, fn ->
        :atomics.put(board.sum, 1, 0)
        Board.expect(board, :handled, targets)
        begun = now()

        case from do
          :senders -> for to <- pairs, do: spawn(fn -> Client.tell_all(to, 0, per_sender) end)
          :producers -> for producer <- producers, do: send(producer, {:burst, per_sender})
        end

        ended = Board.wait(board, :handled)
        check_sum(board, @senders * div(per_sender * (per_sender - 1), 2))
        ended - begun
      end)

    [{"rate", "M/s", per_sender * @senders * 1000 / elapsed, ""}]
  end

  defp check_sum(board, expected) do
    sum = :atomics.get(board.sum, 1)
    if sum != expected, do: fail("handlers added up to #{sum} instead of #{expected}")
  end

  defp ask_one(budget) do
    target = Counter.start(Board.new(), @never, budget.queue)
    asks = Client.ask_until(target, now() + budget.warmup, 0)
    begun = now()
    {latencies, sum} = Client.time_asks(target, begun, begun + budget.seconds, [], 0)
    count = length(latencies)
    if sum != asks + count, do: fail("the last reply was #{sum} after #{asks + count} asks")
    sorted = latencies |> Enum.sort() |> List.to_tuple()
    at = fn share -> elem(sorted, trunc(count * share)) end
    [{"p50", "ns", at.(0.50), ""}, {"p99", "ns", at.(0.99), ""}]
  end

  defp ask_eight(budget) do
    target = Counter.start(Board.new(), @never, budget.queue)
    flags = :atomics.new(2, [])
    owner = self()

    for _ <- 1..@clients do
      spawn(fn -> send(owner, {:asked, Client.ask_while(target, flags, 0, 0)}) end)
    end

    Process.sleep(div(budget.warmup, 1_000_000))
    begun = now()
    :atomics.put(flags, 1, 1)
    Process.sleep(div(budget.seconds, 1_000_000))
    :atomics.put(flags, 1, 0)
    elapsed = now() - begun
    :atomics.put(flags, 2, 1)

    {all, counted} =
      Enum.reduce(1..@clients, {0, 0}, fn _, {all, counted} ->
        receive do
          {:asked, {own_all, own_counted}} -> {all + own_all, counted + own_counted}
        end
      end)

    sum = Client.ask(target, 1)
    if sum != all + 1, do: fail("the actor counted #{sum} of #{all + 1} asks")
    [{"rate", "M/s", counted * 1000 / elapsed, ""}]
  end

  defp publish(budget, subscribers) do
    board = Board.new()
    Board.expect(board, :started, subscribers)
    group = for _ <- 1..subscribers, do: Counter.start(board, @publishes, budget.queue)
    Board.wait(board, :started)

    elapsed =
      median(budget, fn ->
        :atomics.put(board.sum, 1, 0)
        Board.expect(board, :handled, subscribers)
        begun = now()
        for number <- 1..@publishes, member <- group, do: send(member, {:add, number})
        ended = Board.wait(board, :handled)
        check_sum(board, subscribers * div(@publishes * (@publishes + 1), 2))
        ended - begun
      end)

    [{"per-subscriber", "ns", elapsed / (subscribers * @publishes), "loop of tells"}]
  end

  defp lifecycle(budget, phase) do
    actors = budget.messages

    elapsed =
      median(budget, fn ->
        board = Board.new()
        Board.expect(board, :started, actors)
        Board.expect(board, :stopped, actors)
        begun = now()
        counters = for _ <- 1..actors, do: Counter.start(board, @never, budget.queue)
        spawned = Board.wait(board, :started) - begun
        begun = now()
        for counter <- counters, do: send(counter, :stop)
        stopped = Board.wait(board, :stopped) - begun
        if phase == :spawn, do: spawned, else: stopped
      end)

    [{Atom.to_string(phase), "ns", elapsed / actors, ""}]
  end

  defp memory(budget) do
    early = spawn_and_tell(budget, 1_000)
    before = resident_bytes()
    counters = spawn_and_tell(budget, budget.messages)
    later = resident_bytes()
    # Still referenced here, so none was collected before the reading.
    true = length(early) + length(counters) == budget.messages + 1_000
    [{"resident", "bytes", (later - before) / budget.messages, ""}]
  end

  defp spawn_and_tell(budget, actors) do
    board = Board.new()
    Board.expect(board, :handled, actors)

    counters =
      for _ <- 1..actors do
        counter = Counter.start(board, 1, budget.queue)
        send(counter, {:add, 1})
        counter
      end

    Board.wait(board, :handled)
    check_sum(board, actors)
    counters
  end

  defp resident_bytes do
    :erlang.garbage_collect()
    [_, pages | _] = "/proc/self/statm" |> File.read!() |> String.split()
    String.to_integer(pages) * 4096
  end
end

Code.require_file("remote.exs", __DIR__)
Peer.main(System.argv())
