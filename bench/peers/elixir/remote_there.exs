# The other node of `remote.exs`: eight processes that add up what they are told. Ends with its input.

defmodule There do
  def loop(told) do
    receive do
      {:add, number} ->
        loop(told + number)

      {:take, from, ref} ->
        send(from, {ref, told})
        loop(0)
    end
  end
end

for n <- 0..7, do: Process.register(spawn(fn -> There.loop(0) end), :"counter_#{n}")
IO.puts("ready")
IO.read(:stdio, :eof)
System.halt(0)
