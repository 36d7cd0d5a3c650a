%% Peer benchmark: Erlang/OTP processes and mailboxes.
%%
%%   erl -noshell +S N:N -pa build/peers -run erl_peer main BENCH THREADS [ARG]
%%
%% THREADS is only echoed into the JSON line; +S sets it. See bench/README.md.
-module(erl_peer).
-export([main/1]).

%% ------------------------------------------------------------------- harness

main([Bench, Threads | Rest]) ->
    logger:set_primary_config(level, none),
    Arg = case Rest of [A | _] -> A; [] -> "5" end,
    Self = self(),
    %% A process of its own, with the default heap, runs the workload.
    {Pid, Ref} = spawn_monitor(fun() -> bench(Bench, Threads, Arg), Self ! finished end),
    receive
        {'DOWN', Ref, process, Pid, normal} -> halt(0);
        {'DOWN', Ref, process, Pid, Why} -> io:format(standard_error, "failed: ~p~n", [Why]), halt(1)
    end.

env(Name, Def) ->
    case os:getenv(Name) of false -> Def; V -> list_to_integer(V) end.

median(L) ->
    S = lists:sort(L), M = length(S) div 2,
    case length(S) rem 2 of
        1 -> lists:nth(M + 1, S);
        0 -> (lists:nth(M, S) + lists:nth(M + 1, S)) / 2
    end.

%% What the whole emulator has used up, summed over its threads (which never end): CPU microseconds,
%% voluntary and involuntary context switches.
cost() ->
    {ok, Tids} = file:list_dir("/proc/self/task"),
    sum3([thread_cost("/proc/self/task/" ++ T) || T <- Tids]).

thread_cost(Task) ->
    {ok, Times} = read_proc(Task ++ "/schedstat"),
    [Ns | _] = binary:split(Times, <<" ">>),
    {ok, Status} = read_proc(Task ++ "/status"),
    {binary_to_integer(Ns) / 1000, field(<<"voluntary_ctxt_switches">>, Status),
     field(<<"nonvoluntary_ctxt_switches">>, Status)}.

sum3(L) -> lists:foldl(fun({A, B, C}, {X, Y, Z}) -> {A + X, B + Y, C + Z} end, {0, 0, 0}, L).

read_proc(Path) ->
    {ok, F} = file:open(Path, [read, raw, binary]),
    {ok, B} = file:read(F, 65536),
    ok = file:close(F),
    {ok, B}.

proc_status(Key) ->
    {ok, B} = read_proc("/proc/self/status"),
    field(Key, B) * 1024.

%% The number in the line of that name.
field(Key, Text) ->
    [V | _] = [V || L <- binary:split(Text, <<"\n">>, [global]),
                    [K, V] <- [binary:split(L, <<":">>)], K =:= Key],
    [Num | _] = string:lexemes(V, " \tkB"),
    binary_to_integer(Num).

mappings() ->
    {ok, F} = file:open("/proc/self/maps", [read, raw, binary]),
    Count = lines(F, 0),
    ok = file:close(F),
    Count.

lines(F, Count) ->
    case file:read(F, 65536) of
        {ok, B} -> lines(F, Count + length(binary:matches(B, <<"\n">>)));
        eof -> Count
    end.

%% Each run is a fresh process, so that one run's heap is not the next one's.
once(F) ->
    {Pid, Ref} = spawn_monitor(F),
    receive {'DOWN', Ref, process, Pid, normal} -> ok end.

measure(Bench, Threads, N, F) ->
    once(F),
    Begin = erlang:monotonic_time(microsecond),
    Runs = loop(F, env("PEERS_RUNS", 7), env("PEERS_BUDGET_S", 12) * 1000000, Begin, []),
    {Wall, Costs} = lists:unzip(Runs),
    {Cpu, Voluntary, Involuntary} = lists:unzip3(Costs),
    Med = median(Wall),
    io:format("{\"peer\":\"erlang\",\"bench\":\"~s\",\"threads\":~s,\"n\":~b,\"median_us\":~.1f,"
              "\"min_us\":~.1f,\"max_us\":~.1f,\"runs\":~b,\"cpu_us\":~.1f,\"ns_per_op\":~.1f,"
              "\"vol_cs\":~.1f,\"invol_cs\":~.1f,\"samples_us\":[~s]}~n",
              [Bench, Threads, N, Med, lists:min(Wall), lists:max(Wall), length(Wall),
               median(Cpu), Med * 1000 / N, float(median(Voluntary)), float(median(Involuntary)),
               lists:join(",", [io_lib:format("~.1f", [W]) || W <- Wall])]).

loop(_, 0, _, _, Acc) -> Acc;
loop(F, Left, Budget, Begin, Acc) ->
    Used = erlang:monotonic_time(microsecond) - Begin,
    if
        length(Acc) >= 4, Used > Budget -> Acc;
        true ->
            {C0, V0, I0} = cost(),
            T0 = erlang:monotonic_time(nanosecond),
            once(F),
            T1 = erlang:monotonic_time(nanosecond),
            {C1, V1, I1} = cost(),
            loop(F, Left - 1, Budget, Begin, [{(T1 - T0) / 1000, {C1 - C0, V1 - V0, I1 - I0}} | Acc])
    end.

sleep_millis(I) -> 1 + (((I * 2654435761) band 16#FFFFFFFF) bsr 16) rem 10.

%% ----------------------------------------------------------------- workloads

bench("chained_spawn" = B, T, _) -> measure(B, T, 10000, fun() -> chained_spawn(10000) end);
bench("yield_many" = B, T, _) -> measure(B, T, 100000, fun() -> yield_many(100, 1000) end);
bench("ping_pong" = B, T, _) -> measure(B, T, 100000, fun() -> ping_pong(100000) end);
bench("ping_pong_oneshot" = B, T, _) -> measure(B, T, 10000, fun() -> oneshot(0, 10000) end);
bench("spawn_storm" = B, T, _) -> measure(B, T, 100000, fun() -> spawn_storm(100000) end);
bench("mpsc_contention" = B, T, _) -> measure(B, T, 160000, fun() -> mpsc(8, 20000) end);
bench("uncontended_channel" = B, T, _) -> measure(B, T, 1000000, fun() -> mpsc(1, 1000000) end);
bench("many_timers" = B, T, _) -> measure(B, T, 10000, fun() -> many_timers(10000) end);
bench("fan_out_compute" = B, T, _) -> measure(B, T, 8, fun() -> fan_out(8) end);
bench("ring" = B, T, _) -> measure(B, T, 1000000, fun() -> ring(503, 1000000) end);
bench("skynet" = B, T, _) -> measure(B, T, 111111, fun() -> skynet(100000) end);
bench("skynet_1m" = B, T, _) -> measure(B, T, 1111111, fun() -> skynet(1000000) end);
bench("panic_isolation" = B, T, _) -> measure(B, T, 10000, fun() -> panics(10000) end);
bench("supervised_restart" = B, T, _) -> measure(B, T, 2000, fun() -> erl_savina:supervised_restart(2000) end);
bench("call_reply" = B, T, _) -> measure(B, T, 200000, fun() -> erl_savina:call_reply(200000) end);
bench("fork_join_throughput" = B, T, _) ->
    measure(B, T, 1200000, fun() -> erl_savina:fork_join_throughput(60, 20000) end);
bench("counting" = B, T, _) -> measure(B, T, 1000000, fun() -> erl_savina:counting(1000000) end);
bench("big" = B, T, _) -> measure(B, T, 360000, fun() -> erl_savina:big(120, 3000) end);
bench("philosophers" = B, T, _) -> measure(B, T, 200000, fun() -> erl_savina:philosophers(20, 10000) end);
bench("bank_transaction" = B, T, _) ->
    measure(B, T, 100000, fun() -> erl_savina:bank_transaction(1000, 100000) end);
bench("idle_memory_100k" = B, T, _) -> idle_memory(B, T, 100000);
bench("idle_memory_1m" = B, T, _) -> idle_memory(B, T, 1000000);
bench("tcp_server", _, Port) -> tcp_server(list_to_integer(Port));
bench("idle", _, Secs) -> timer:sleep(list_to_integer(Secs) * 1000);
bench("sleep1ms", _, Secs) ->
    T0 = erlang:monotonic_time(microsecond),
    N = sleep_loop(T0 + list_to_integer(Secs) * 1000000, 0),
    io:format("iters_per_s=~.1f~n", [N * 1.0e6 / (erlang:monotonic_time(microsecond) - T0)]);
bench(B, T, _) ->
    io:format("{\"peer\":\"erlang\",\"bench\":\"~s\",\"threads\":~s,\"skip\":\"not available\"}~n", [B, T]).

chained_spawn(0) -> ok;
chained_spawn(N) ->
    {Pid, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    chained_spawn(N - 1).

yield_many(Tasks, Yields) ->
    Parent = self(),
    [spawn(fun() -> yields(Yields), Parent ! done end) || _ <- lists:seq(1, Tasks)],
    await(Tasks).

yields(0) -> ok;
yields(N) -> erlang:yield(), yields(N - 1).

await(0) -> ok;
await(N) -> receive done -> await(N - 1) end.

ping_pong(N) ->
    Parent = self(),
    Ponger = spawn(fun ponger/0),
    spawn(fun() -> Parent ! {result, pinger(Ponger, 0, N)}, Ponger ! stop end),
    receive {result, N} -> ok end.

ponger() ->
    receive
        {From, V} -> From ! V + 1, ponger();
        stop -> ok
    end.

pinger(_, V, 0) -> V;
pinger(Ponger, V, N) ->
    Ponger ! {self(), V},
    receive W -> pinger(Ponger, W, N - 1) end.

oneshot(Sum, 0) -> Sum;
oneshot(Sum, N) ->
    Parent = self(),
    Ref = make_ref(),
    spawn(fun() -> Parent ! {Ref, N} end),
    receive {Ref, V} -> oneshot(Sum + V, N - 1) end.

spawn_storm(N) ->
    Parent = self(),
    spawn_n(N, fun() -> Parent ! done end),
    await(N).

spawn_n(0, _) -> ok;
spawn_n(N, F) -> spawn(F), spawn_n(N - 1, F).

mpsc(Producers, Each) ->
    Parent = self(),
    Consumer = spawn(fun() -> Parent ! {sum, consume(Producers * Each, 0)} end),
    spawn_n(Producers, fun() -> produce(Consumer, 0, Each) end),
    Want = Producers * (Each * (Each - 1) div 2),
    receive {sum, Want} -> ok end.

produce(_, Each, Each) -> ok;
produce(Pid, I, Each) -> Pid ! I, produce(Pid, I + 1, Each).

consume(0, Sum) -> Sum;
consume(N, Sum) -> receive V -> consume(N - 1, Sum + V) end.

many_timers(N) ->
    Parent = self(),
    [spawn(fun() -> receive after sleep_millis(I) -> Parent ! done end end) || I <- lists:seq(0, N - 1)],
    await(N).

count_primes(N, Below, Count) when N >= Below -> Count;
count_primes(N, Below, Count) ->
    P = (N =:= 2 orelse N rem 2 =:= 1) andalso no_divisor(N, 3),
    count_primes(N + 1, Below, if P -> Count + 1; true -> Count end).

no_divisor(N, D) when D * D > N -> true;
no_divisor(N, D) when N rem D =:= 0 -> false;
no_divisor(N, D) -> no_divisor(N, D + 2).

fan_out(Tasks) ->
    Parent = self(),
    spawn_n(Tasks, fun() -> 17984 = count_primes(2, 200000, 0), Parent ! done end),
    await(Tasks).

%% Passes a token Hops times; then `stop', once around, ends the processes.
ring(Size, Hops) ->
    Parent = self(),
    First = spawn(fun() -> receive {next, Next} -> ring_node(0, Next, Parent) end end),
    Last = lists:foldl(
             fun(Id, Next) -> spawn(fun() -> ring_node(Id, Next, Parent) end) end,
             First, lists:seq(Size - 1, 1, -1)),
    First ! {next, Last},
    First ! Hops,
    Want = Hops rem Size,
    receive {at, Want} -> First ! stop end.

ring_node(Id, Next, Parent) ->
    receive
        stop when Id =:= 0 -> Next ! stop;
        stop -> catch Next ! stop;
        0 -> Parent ! {at, Id}, ring_node(Id, Next, Parent);
        Left -> Next ! Left - 1, ring_node(Id, Next, Parent)
    end.

skynet(Leaves) ->
    Parent = self(),
    spawn(fun() -> skynet_node(Parent, 0, Leaves) end),
    Want = Leaves * (Leaves - 1) div 2,
    receive Want -> ok end.

skynet_node(Parent, Num, 1) -> Parent ! Num;
skynet_node(Parent, Num, Size) ->
    Self = self(),
    Step = Size div 10,
    [spawn(fun() -> skynet_node(Self, Num + I * Step, Step) end) || I <- lists:seq(0, 9)],
    Parent ! consume(10, 0).

panics(0) -> ok;
panics(N) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit(boom) end),
    receive {'DOWN', Ref, process, Pid, boom} -> panics(N - 1) end.

%% Parks N processes, sends each one a message, and ends them all.
idle_memory(Bench, Threads, N) ->
    erlang:garbage_collect(),
    Before = proc_status(<<"VmRSS">>),
    T0 = erlang:monotonic_time(nanosecond),
    Count = counters:new(3, []),
    Pids = spawn_all(N, fun() -> counters:add(Count, 1, 1), parked(Count) end, []),
    until(fun() -> counters:get(Count, 1) =:= N end),
    Wall = micros_since(T0),
    timer:sleep(200),
    {After, Mappings} = {proc_status(<<"VmRSS">>), mappings()},
    T1 = erlang:monotonic_time(nanosecond),
    lists:foreach(fun(P) -> P ! 1 end, Pids),
    until(fun() -> counters:get(Count, 2) =:= N end),
    Wake = micros_since(T1),
    T2 = erlang:monotonic_time(nanosecond),
    lists:foreach(fun(P) -> P ! stop end, Pids),
    until(fun() -> counters:get(Count, 3) =:= N end),
    Stop = micros_since(T2),
    timer:sleep(200),
    io:format("{\"peer\":\"erlang\",\"bench\":\"~s\",\"threads\":~s,\"n\":~b,\"median_us\":~.1f,\"min_us\":~.1f,"
              "\"max_us\":~.1f,\"runs\":1,\"bytes_per_task\":~.1f,\"rss_before\":~b,\"rss_after\":~b,\"vm_hwm\":~b,"
              "\"mappings\":~b,\"wake_us\":~.1f,\"stop_us\":~.1f,\"rss_end\":~b}~n",
              [Bench, Threads, N, Wall, Wall, Wall, (After - Before) / N, Before, After,
               proc_status(<<"VmHWM">>), Mappings, Wake, Stop, proc_status(<<"VmRSS">>)]).

parked(Count) ->
    receive
        stop -> counters:add(Count, 3, 1);
        V -> counters:add(Count, 2, V), parked(Count)
    end.

spawn_all(0, _, Acc) -> Acc;
spawn_all(N, F, Acc) -> spawn_all(N - 1, F, [spawn(F) | Acc]).

micros_since(T0) -> (erlang:monotonic_time(nanosecond) - T0) / 1000.

until(F) ->
    case F() of true -> ok; false -> timer:sleep(1), until(F) end.

sleep_loop(End, N) ->
    case erlang:monotonic_time(microsecond) < End of
        true -> receive after 1 -> ok end, sleep_loop(End, N + 1);
        false -> N
    end.

tcp_server(Port) ->
    {ok, L} = gen_tcp:listen(Port, [binary, {packet, raw}, {active, false}, {nodelay, true},
                                    {reuseaddr, true}, {backlog, 2048}, {ip, {127, 0, 0, 1}}]),
    accept(L).

accept(L) ->
    {ok, S} = gen_tcp:accept(L),
    Pid = spawn(fun() -> receive go -> echo(S) end end),
    ok = gen_tcp:controlling_process(S, Pid),
    Pid ! go,
    accept(L).

echo(S) ->
    case gen_tcp:recv(S, 0) of
        {ok, Data} -> ok = gen_tcp:send(S, Data), echo(S);
        {error, _} -> gen_tcp:close(S)
    end.
