%% The workloads of conversing actors for Erlang: a gen_server that is called, and five of Savina's
%% programs as plain processes, whose replies to calls carry a reference.
-module(erl_savina).
-behaviour(gen_server).
-export([supervised_restart/1, start_child/1, call_reply/1, fork_join_throughput/2, counting/1, big/2, philosophers/2, bank_transaction/2]).
-export([init/1, handle_call/3, handle_cast/2]).

%% The generator that all programs of the comparison share: {16 bits, next state}.
lcg(State) ->
    Next = (State * 1664525 + 1013904223) band 16#FFFFFFFF,
    {Next bsr 16, Next}.

%% -------------------------------------------------------- supervised_restart

start_child(Parent) -> gen_server:start_link(?MODULE, {child, Parent}, []).

%% N times, a permanent child is killed and its supervisor starts it again, which is awaited.
supervised_restart(N) ->
    {ok, Tree} = supervisor:start_link(?MODULE, {tree, self()}),
    First = receive {started, P} -> P end,
    restarts(First, N),
    unlink(Tree),
    Ref = monitor(process, Tree),
    exit(Tree, shutdown),
    receive {'DOWN', Ref, process, Tree, shutdown} -> ok end.

restarts(_, 0) -> ok;
restarts(Child, N) ->
    exit(Child, kill),
    receive {started, Next} when Next =/= Child -> restarts(Next, N - 1) end.

%% ---------------------------------------------------------------- call_reply

init({child, Parent}) -> Parent ! {started, self()}, {ok, 0};
init({tree, Parent}) ->
    {ok, {#{intensity => 1000000, period => 5},
          [#{id => child, start => {?MODULE, start_child, [Parent]}}]}};
init(Sum) -> {ok, Sum}.
handle_call(Value, _From, Sum) -> {reply, Sum + Value, Sum + Value}.
handle_cast(_, Sum) -> {noreply, Sum}.

%% One client calls one server N times; the server answers with the sum so far.
call_reply(N) ->
    {ok, Server} = gen_server:start_link(?MODULE, 0, []),
    Want = N * (N + 1) div 2,
    Want = calls(Server, 1, N),
    ok = gen_server:stop(Server).

calls(Server, N, N) -> gen_server:call(Server, N);
calls(Server, I, N) -> gen_server:call(Server, I), calls(Server, I + 1, N).

%% ----------------------------------------------------- fork_join_throughput

fork_join_throughput(Members, Each) ->
    Parent = self(),
    Want = Each * (Each - 1) div 2,
    All = [spawn_link(fun() -> Want = add_up(Each, 0), Parent ! joined end) || _ <- lists:seq(1, Members)],
    send_all(0, Each, All),
    [receive joined -> ok end || _ <- All],
    ok.

add_up(0, Sum) -> Sum;
add_up(Left, Sum) -> receive V -> add_up(Left - 1, Sum + V) end.

send_all(Each, Each, _) -> ok;
send_all(I, Each, All) -> [P ! I || P <- All], send_all(I + 1, Each, All).

%% ------------------------------------------------------------------ counting

counting(N) ->
    Parent = self(),
    Counter = spawn_link(fun() -> counter(0) end),
    spawn_link(fun() -> increments(Counter, N), Parent ! {count, ask(Counter)} end),
    receive {count, N} -> Counter ! stop end.

counter(Count) ->
    receive
        increment -> counter(Count + 1);
        {retrieve, From, Ref} -> From ! {Ref, Count}, counter(Count);
        stop -> ok
    end.

increments(_, 0) -> ok;
increments(Counter, N) -> Counter ! increment, increments(Counter, N - 1).

ask(Counter) ->
    Ref = make_ref(),
    Counter ! {retrieve, self(), Ref},
    receive {Ref, Count} -> Count end.

%% ----------------------------------------------------------------------- big

big(Members, Rounds) ->
    Parent = self(),
    Pids = [spawn_link(fun() ->
                               receive {go, All} -> ok end,
                               big_begin(Id, Rounds, All, Parent)
                       end) || Id <- lists:seq(0, Members - 1)],
    All = list_to_tuple(Pids),
    [P ! {go, All} || P <- Pids],
    [receive ready -> ok end || _ <- Pids],
    [P ! halt || P <- Pids],
    Want = Members * Rounds,
    Want = lists:sum([receive {answered, A} -> A end || _ <- Pids]),
    ok.

big_begin(Id, Rounds, All, Parent) ->
    big_member(Id, Rounds, All, Parent, ping_another(Id, All, Id), 0).

ping_another(Id, All, State) ->
    {Random, Next} = lcg(State),
    Members = tuple_size(All),
    element(1 + (Id + 1 + Random rem (Members - 1)) rem Members, All) ! {ping, self()},
    Next.

big_member(Id, Left, All, Parent, State, Answered) ->
    receive
        {ping, From} -> From ! pong, big_member(Id, Left, All, Parent, State, Answered + 1);
        pong when Left > 1 -> big_member(Id, Left - 1, All, Parent, ping_another(Id, All, State), Answered);
        pong -> Parent ! ready, big_member(Id, Left - 1, All, Parent, State, Answered);
        halt -> 0 = Left, Parent ! {answered, Answered}
    end.

%% -------------------------------------------------------------- philosophers

philosophers(Seats, Rounds) ->
    Parent = self(),
    Judge = spawn_link(fun() ->
                               Parent ! {meals, arbitrator(erlang:make_tuple(Seats, free), 0)}
                       end),
    [spawn_link(fun() -> philosopher(Judge, Who, Rounds), Parent ! ready end) || Who <- lists:seq(0, Seats - 1)],
    [receive ready -> ok end || _ <- lists:seq(1, Seats)],
    Judge ! stop,
    Want = Seats * Rounds,
    receive {meals, Want} -> ok end.

philosopher(_, _, 0) -> ok;
philosopher(Judge, Who, Left) ->
    Judge ! {hungry, Who, self()},
    receive
        eat -> Judge ! {finished, Who}, philosopher(Judge, Who, Left - 1);
        denied -> philosopher(Judge, Who, Left)
    end.

arbitrator(Forks, Meals) ->
    receive
        {hungry, Who, From} ->
            {Left, Right} = forks(Who, Forks),
            case element(Left, Forks) =:= free andalso element(Right, Forks) =:= free of
                true -> From ! eat, arbitrator(put_forks(Left, Right, taken, Forks), Meals + 1);
                false -> From ! denied, arbitrator(Forks, Meals)
            end;
        {finished, Who} ->
            {Left, Right} = forks(Who, Forks),
            taken = element(Left, Forks),
            taken = element(Right, Forks),
            arbitrator(put_forks(Left, Right, free, Forks), Meals);
        stop ->
            true = lists:all(fun(Fork) -> Fork =:= free end, tuple_to_list(Forks)),
            Meals
    end.

forks(Who, Forks) -> {Who + 1, (Who + 1) rem tuple_size(Forks) + 1}.
put_forks(Left, Right, What, Forks) -> setelement(Left, setelement(Right, Forks, What), What).

%% ---------------------------------------------------------- bank_transaction

%% A mailbox that fills up with all replies is kept off the heap, or each collection copies it.
bank_transaction(Size, Transfers) ->
    process_flag(message_queue_data, off_heap),
    Teller = self(),
    Pids = [spawn_link(fun() -> account(Teller, Id, 0) end) || Id <- lists:seq(0, Size - 1)],
    {Moved, Books} = orders(Transfers, list_to_tuple(Pids), 1, 0, #{}),
    Moved = lists:sum([receive {moved, A} -> A end || _ <- lists:seq(1, Transfers)]),
    [P ! closing || P <- Pids],
    [receive {balance, Id, B} -> B = maps:get(Id, Books, 0) end || _ <- Pids],
    ok.

orders(0, _, _, Moved, Books) -> {Moved, Books};
orders(Left, Accounts, S0, Moved, Books) ->
    Size = tuple_size(Accounts),
    {R1, S1} = lcg(S0),
    {R2, S2} = lcg(S1),
    {R3, S3} = lcg(S2),
    From = R1 rem (Size div 10 * 8),
    To = From + 1 + R2 rem (Size - From - 1),
    Amount = 1 + R3 rem 1000,
    element(From + 1, Accounts) ! {transfer, Amount, element(To + 1, Accounts)},
    Paid = Books#{From => maps:get(From, Books, 0) - Amount},
    orders(Left - 1, Accounts, S3, Moved + Amount, Paid#{To => maps:get(To, Paid, 0) + Amount}).

account(Teller, Id, Balance) ->
    receive
        {transfer, Amount, To} ->
            Ref = make_ref(),
            To ! {deposit, Amount, self(), Ref},
            receive Ref -> ok end,
            Teller ! {moved, Amount},
            account(Teller, Id, Balance - Amount);
        {deposit, Amount, From, Ref} ->
            From ! Ref,
            account(Teller, Id, Balance + Amount);
        closing -> Teller ! {balance, Id, Balance}
    end.
