# `remote-tell` and `remote-ask`: processes of this node tell and ask those of another, by Erlang's
# distribution over a socket of 127.0.0.x. No daemon maps names to ports: both nodes have one port,
# each at an address of its own.

defmodule Remote do
  @tellers 8
  @askers 64
  @asks 500
  @port "4870"
  @cookie :bench

  def flags(address) do
    "-start_epmd false -erl_epmd_port #{@port} -kernel inet_dist_use_interface {#{String.replace(address, ".", ",")}}"
  end

  # Processes of the other node, which lives as long as this one.
  def counters do
    {:ok, _} = Node.start(:"here@127.0.0.1")
    Node.set_cookie(@cookie)
    script = Path.join(__DIR__, "remote_there.exs")
    name = ["--name", "there@127.0.0.2", "--cookie", Atom.to_string(@cookie)]
    arguments = name ++ ["--erl", flags("127.0.0.2"), script]
    elixir = System.find_executable("elixir")
    there = Port.open({:spawn_executable, elixir}, [:binary, :exit_status, args: arguments])

    receive do
      {^there, {:data, "ready" <> _}} -> :ok
      {^there, other} -> Peer.fail("the other node: #{inspect(other)}")
    end

    true = Node.connect(:"there@127.0.0.2")
    for n <- 0..(@tellers - 1), do: :erpc.call(:"there@127.0.0.2", Process, :whereis, [:"counter_#{n}"])
  end

  def tell(messages, median) do
    counters = counters()
    each = div(messages, @tellers)

    for count <- [1, @tellers] do
      targets = Enum.take(counters, count)
      pairs = for i <- 0..(@tellers - 1), do: Enum.at(targets, rem(i, count))
      elapsed = median.(fn -> tell_all(pairs, targets, each) end)
      {"8to#{count}", "M/s", each * @tellers * 1000 / elapsed, ""}
    end
  end

  defp tell_all(pairs, targets, each) do
    begun = now()
    for target <- pairs, do: spawn_monitor(fn -> told(target, each) end)
    wait_for(@tellers)
    told = targets |> Enum.map(&take/1) |> Enum.sum()
    if told != each * @tellers, do: Peer.fail("#{told} of #{each * @tellers} messages were handled")
    now() - begun
  end

  defp told(_, 0), do: :ok

  defp told(target, left) do
    send(target, {:add, 1})
    told(target, left - 1)
  end

  def ask(seconds, median) do
    counters = [first | _] = counters()
    latencies = one_by_one(first, now() + seconds, []) |> Enum.sort() |> List.to_tuple()
    at = fn share -> elem(latencies, trunc(tuple_size(latencies) * share)) end

    elapsed =
      median.(fn ->
        begun = now()
        for n <- 0..(@askers - 1), do: spawn_monitor(fn -> asked(Enum.at(counters, rem(n, 8)), @asks) end)
        wait_for(@askers)
        now() - begun
      end)

    [
      {"p50", "ns", at.(0.5), ""},
      {"p99", "ns", at.(0.99), ""},
      {"64-askers", "1/s", @askers * @asks * 1.0e9 / elapsed, ""}
    ]
  end

  defp one_by_one(target, until, latencies) do
    begun = now()
    take(target)
    ended = now()
    if ended < until, do: one_by_one(target, until, [ended - begun | latencies]), else: latencies
  end

  defp asked(_, 0), do: :ok

  defp asked(target, left) do
    take(target)
    asked(target, left - 1)
  end

  defp take(target) do
    ref = make_ref()
    send(target, {:take, self(), ref})

    receive do
      {^ref, told} -> told
    end
  end

  defp wait_for(0), do: :ok

  defp wait_for(left) do
    receive do
      {:DOWN, _, :process, _, :normal} -> wait_for(left - 1)
      {:DOWN, _, :process, _, why} -> Peer.fail(inspect(why))
    end
  end

  defp now, do: :erlang.monotonic_time(:nanosecond)
end
