//! The workloads of conversing actors: a server that is called, and five of Savina's programs. A
//! task with an unbounded mpsc channel stands for an actor; a oneshot is the reply to a call.

use std::sync::Arc;

use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::task::spawn;

/// The generator that all programs of the comparison share.
struct Lcg(u32);

impl Lcg {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(1664525).wrapping_add(1013904223);
        (self.0 >> 16) as usize
    }
}

/// Channels for n actors: everybody's mailbox, and the ends to receive from.
fn mailboxes<T>(n: usize) -> (Arc<Vec<UnboundedSender<T>>>, Vec<UnboundedReceiver<T>>) {
    let (senders, receivers) = (0..n).map(|_| unbounded_channel()).unzip();
    (Arc::new(senders), receivers)
}

/// One client calls one server n times; the server answers with the sum so far.
pub async fn call_reply(n: u64) {
    let (tx, mut rx) = unbounded_channel::<(u64, oneshot::Sender<u64>)>();
    let server = spawn(async move {
        let mut sum = 0;
        while let Some((value, reply)) = rx.recv().await {
            sum += value;
            reply.send(sum).unwrap();
        }
    });
    let client = spawn(async move {
        let mut sum = 0;
        for i in 1..=n {
            let (reply, answer) = oneshot::channel();
            tx.send((i, reply)).unwrap();
            sum = answer.await.unwrap();
        }
        sum
    });
    assert_eq!(client.await.unwrap(), n * (n + 1) / 2);
    server.await.unwrap();
}

pub async fn fork_join_throughput(members: usize, each: u64) {
    let mut boxes = Vec::new();
    let mut handles = Vec::new();
    for _ in 0..members {
        let (tx, mut rx) = unbounded_channel::<u64>();
        boxes.push(tx);
        handles.push(spawn(async move {
            let mut sum = 0;
            while let Some(v) = rx.recv().await {
                sum += v;
            }
            sum
        }));
    }
    for i in 0..each {
        for mailbox in &boxes {
            mailbox.send(i).unwrap();
        }
    }
    drop(boxes);
    for h in handles {
        assert_eq!(h.await.unwrap(), each * (each - 1) / 2);
    }
}

enum Count {
    Increment,
    Retrieve(oneshot::Sender<u64>),
}

pub async fn counting(n: u64) {
    let (tx, mut rx) = unbounded_channel();
    let counter = spawn(async move {
        let mut count = 0;
        while let Some(m) = rx.recv().await {
            match m {
                Count::Increment => count += 1,
                Count::Retrieve(reply) => reply.send(count).unwrap(),
            }
        }
    });
    let producer = spawn(async move {
        for _ in 0..n {
            tx.send(Count::Increment).ok().unwrap();
        }
        let (reply, answer) = oneshot::channel();
        tx.send(Count::Retrieve(reply)).ok().unwrap();
        answer.await.unwrap()
    });
    assert_eq!(producer.await.unwrap(), n);
    counter.await.unwrap();
}

enum Big {
    Ping(usize),
    Pong,
    Halt,
}

async fn big_member(
    id: usize,
    mut rounds: u64,
    mut inbox: UnboundedReceiver<Big>,
    all: Arc<Vec<UnboundedSender<Big>>>,
    done: UnboundedSender<usize>,
) -> u64 {
    let mut random = Lcg(id as u32);
    let mut ping_another = || {
        let other = (id + 1 + random.next() % (all.len() - 1)) % all.len();
        all[other].send(Big::Ping(id)).ok().unwrap();
    };
    let mut answered = 0;
    ping_another();
    while let Some(m) = inbox.recv().await {
        match m {
            Big::Ping(from) => {
                all[from].send(Big::Pong).ok().unwrap();
                answered += 1;
            }
            Big::Pong => {
                rounds -= 1;
                if rounds > 0 {
                    ping_another();
                } else {
                    done.send(id).unwrap();
                }
            }
            Big::Halt => break,
        }
    }
    assert_eq!(rounds, 0);
    answered
}

pub async fn big(members: usize, rounds: u64) {
    let (all, inboxes) = mailboxes(members);
    let (done, mut ready) = unbounded_channel();
    let handles: Vec<_> = inboxes
        .into_iter()
        .enumerate()
        .map(|(id, inbox)| spawn(big_member(id, rounds, inbox, all.clone(), done.clone())))
        .collect();
    for _ in 0..members {
        ready.recv().await.unwrap();
    }
    for mailbox in all.iter() {
        mailbox.send(Big::Halt).ok().unwrap();
    }
    let mut answered = 0;
    for h in handles {
        answered += h.await.unwrap();
    }
    assert_eq!(answered, members as u64 * rounds);
}

enum Forks {
    Hungry(usize),
    Finished(usize),
}

async fn arbitrator(
    mut inbox: UnboundedReceiver<Forks>,
    philosophers: Arc<Vec<UnboundedSender<bool>>>,
) -> u64 {
    let seats = philosophers.len();
    let mut taken = vec![false; seats];
    let mut meals = 0;
    while let Some(m) = inbox.recv().await {
        match m {
            Forks::Hungry(left) => {
                let right = (left + 1) % seats;
                let free = !taken[left] && !taken[right];
                if free {
                    taken[left] = true;
                    taken[right] = true;
                    meals += 1;
                }
                philosophers[left].send(free).unwrap();
            }
            Forks::Finished(left) => {
                let right = (left + 1) % seats;
                assert!(taken[left] && taken[right]);
                taken[left] = false;
                taken[right] = false;
            }
        }
    }
    assert!(taken.iter().all(|fork| !fork));
    meals
}

pub async fn philosophers(seats: usize, rounds: u64) {
    let (boxes, inboxes) = mailboxes(seats);
    let (asks, requests) = unbounded_channel();
    let judge = spawn(arbitrator(requests, boxes));
    let handles: Vec<_> = inboxes
        .into_iter()
        .enumerate()
        .map(|(who, mut inbox)| {
            let asks = asks.clone();
            spawn(async move {
                for _ in 0..rounds {
                    asks.send(Forks::Hungry(who)).ok().unwrap();
                    while !inbox.recv().await.unwrap() {
                        asks.send(Forks::Hungry(who)).ok().unwrap();
                    }
                    asks.send(Forks::Finished(who)).ok().unwrap();
                }
            })
        })
        .collect();
    drop(asks);
    for h in handles {
        h.await.unwrap();
    }
    assert_eq!(judge.await.unwrap(), seats as u64 * rounds);
}

enum Bank {
    Transfer { amount: i64, to: usize },
    Deposit { amount: i64, reply: oneshot::Sender<bool> },
    Closing,
}

async fn account(
    mut inbox: UnboundedReceiver<Bank>,
    accounts: Arc<Vec<UnboundedSender<Bank>>>,
    teller: UnboundedSender<i64>,
) -> i64 {
    let mut balance = 0;
    while let Some(m) = inbox.recv().await {
        match m {
            Bank::Transfer { amount, to } => {
                balance -= amount;
                let (reply, answer) = oneshot::channel();
                accounts[to].send(Bank::Deposit { amount, reply }).ok().unwrap();
                assert!(answer.await.unwrap());
                teller.send(amount).unwrap();
            }
            Bank::Deposit { amount, reply } => {
                balance += amount;
                reply.send(true).unwrap();
            }
            Bank::Closing => break,
        }
    }
    balance
}

pub async fn bank_transaction(size: usize, transfers: usize) {
    let (accounts, inboxes) = mailboxes(size);
    let (teller, mut replies) = unbounded_channel();
    let handles: Vec<_> = inboxes
        .into_iter()
        .map(|inbox| spawn(account(inbox, accounts.clone(), teller.clone())))
        .collect();
    let mut books = vec![0; size];
    let (mut random, mut moved) = (Lcg(1), 0);
    for _ in 0..transfers {
        let from = random.next() % (size / 10 * 8);
        let to = from + 1 + random.next() % (size - from - 1);
        let amount = 1 + (random.next() % 1000) as i64;
        books[from] -= amount;
        books[to] += amount;
        moved += amount;
        accounts[from].send(Bank::Transfer { amount, to }).ok().unwrap();
    }
    for _ in 0..transfers {
        moved -= replies.recv().await.unwrap();
    }
    assert_eq!(moved, 0);
    for mailbox in accounts.iter() {
        mailbox.send(Bank::Closing).ok().unwrap();
    }
    for (h, expected) in handles.into_iter().zip(books) {
        assert_eq!(h.await.unwrap(), expected);
    }
}
