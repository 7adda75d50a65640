//! ractor's cluster under `remote-tell` and `remote-ask`: tasks here tell and ask actors of another
//! process by its `NodeServer`, unencrypted, over a socket of 127.0.0.1. The actors are found in a
//! process group, as its documentation does it.

use althing_bench_workloads::{Arguments, Budget, Sample, percentile_ns};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, call, pg};
use ractor_cluster::{NodeServer, RactorClusterMessage, client_connect};
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const NAME: &str = "ractor-cluster";
/// The first argument of the other process.
const THERE: &str = "remote-there";
const GROUP: &str = "counters";
const TELLERS: usize = 8;
const ASKERS: usize = 64;
const ASKS: usize = 500;
const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

#[derive(RactorClusterMessage)]
enum ToCounter {
    Add(u64),
    /// How much was added since the last time.
    #[rpc]
    Take(RpcReplyPort<u64>),
}

struct Counter;

impl Actor for Counter {
    type Msg = ToCounter;
    type State = u64;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<ToCounter>, (): ()) -> Result<u64, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(
        &self,
        _: ActorRef<ToCounter>,
        message: ToCounter,
        told: &mut u64,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ToCounter::Add(number) => *told += number,
            ToCounter::Take(reply) => reply.send(std::mem::take(told))?,
        }
        Ok(())
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Starts the server of a node; returns it with its port.
async fn node(name: &str) -> Result<(ActorRef<ractor_cluster::NodeServerMessage>, u16), String> {
    let port = TcpListener::bind((HERE, 0)).and_then(|free| free.local_addr()).map_err(text)?.port();
    let server = NodeServer::new(port, "bench".into(), name.into(), HERE.to_string(), None, None)
        .with_listen_addr(IpAddr::V4(HERE));
    let (server, _) = Actor::spawn(None, server, ()).await.map_err(text)?;
    Ok((server, port))
}

async fn serve() -> Result<(), String> {
    let (_server, port) = node("there").await?;
    for _ in 0..TELLERS {
        let (counter, _) = Actor::spawn(None, Counter, ()).await.map_err(text)?;
        pg::join(GROUP.into(), vec![counter.get_cell()]);
    }
    println!("{port}");
    // Until the other process has ended.
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()))
        .await
        .map_err(text)?
        .map_err(text)?;
    Ok(())
}

/// The other process and its actors.
struct Pair {
    counters: Vec<ActorRef<ToCounter>>,
    there: Child,
}

impl Pair {
    async fn meet() -> Result<Self, String> {
        let mut there = Command::new(std::env::current_exe().map_err(text)?)
            .arg(THERE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(text)?;
        let mut port = String::new();
        let said = there.stdout.take().ok_or("the other process has an output")?;
        BufReader::new(said).read_line(&mut port).map_err(text)?;
        let (server, _) = node("here").await?;
        client_connect(&server, format!("{HERE}:{}", port.trim())).await.map_err(text)?;
        let until = Instant::now() + Duration::from_secs(20);
        let mut cells = Vec::new();
        while cells.len() < TELLERS {
            if Instant::now() > until {
                return Err("the other node's actors are not in the group".into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            cells = pg::get_members(&GROUP.into());
        }
        Ok(Self { counters: cells.into_iter().map(ActorRef::from).collect(), there })
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // It has nothing to lose.
        _ = self.there.kill();
        _ = self.there.wait();
    }
}

async fn take(counter: &ActorRef<ToCounter>) -> Result<u64, String> {
    call!(counter, ToCounter::Take).map_err(text)
}

async fn tell_all(counters: &[ActorRef<ToCounter>], each: u64) -> Result<Duration, String> {
    let begun = Instant::now();
    let tellers: Vec<_> = (0..TELLERS)
        .map(|teller| {
            let counter = counters[teller % counters.len()].clone();
            tokio::spawn(async move {
                (0..each).try_for_each(|_| counter.cast(ToCounter::Add(1)).map_err(text))
            })
        })
        .collect();
    for teller in tellers {
        teller.await.map_err(text)??;
    }
    let mut told = 0;
    for counter in counters {
        told += take(counter).await?;
    }
    if told != each * TELLERS as u64 {
        return Err(format!("{told} of {} messages were handled", each * TELLERS as u64));
    }
    Ok(begun.elapsed())
}

async fn ask_all(counters: &[ActorRef<ToCounter>]) -> Result<Duration, String> {
    let begun = Instant::now();
    let askers: Vec<_> = (0..ASKERS)
        .map(|asker| {
            let counter = counters[asker % counters.len()].clone();
            tokio::spawn(async move {
                for _ in 0..ASKS {
                    take(&counter).await?;
                }
                Ok::<_, String>(())
            })
        })
        .collect();
    for asker in askers {
        asker.await.map_err(text)??;
    }
    Ok(begun.elapsed())
}

/// How many a second, of batches of so many.
fn rate(batch: u64, durations: &[Duration]) -> f64 {
    let total: Duration = durations.iter().sum();
    (batch * durations.len() as u64) as f64 / total.as_secs_f64()
}

fn run(name: &str, budget: Budget) -> Result<Vec<Sample>, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(text)?;
    let pair = runtime.block_on(Pair::meet())?;
    let counters = &pair.counters;
    if name == "remote-tell" {
        let each = budget.messages / TELLERS as u64;
        let mut samples = Vec::new();
        for (count, metric) in [(1, "8to1"), (TELLERS, "8to8")] {
            let durations = budget.run(|| runtime.block_on(tell_all(&counters[..count], each)))?;
            samples.push(Sample::new(metric, "M/s", rate(each * TELLERS as u64, &durations) / 1e6));
        }
        return Ok(samples);
    }
    let until = Duration::from_secs_f64(budget.seconds);
    let one = counters[0].clone();
    let latencies = runtime.block_on(async move {
        let (begun, mut latencies) = (Instant::now(), Vec::new());
        while begun.elapsed() < until {
            let sent = Instant::now();
            take(&one).await?;
            latencies.push(u32::try_from(sent.elapsed().as_nanos()).unwrap_or(u32::MAX));
        }
        latencies.sort_unstable();
        Ok::<_, String>(latencies)
    })?;
    let durations = budget.run(|| runtime.block_on(ask_all(counters)))?;
    Ok(vec![
        Sample::new("p50", "ns", percentile_ns(&latencies, 0.5)),
        Sample::new("p99", "ns", percentile_ns(&latencies, 0.99)),
        Sample::new("64-askers", "1/s", rate((ASKERS * ASKS) as u64, &durations)),
    ])
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.peek().is_some_and(|first| first == THERE) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let served = runtime.map_err(text).and_then(|runtime| runtime.block_on(serve()));
        return served.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let Ok(Arguments { workload, budget }) = Arguments::parse(arguments) else {
        return ExitCode::from(2);
    };
    if !workload.starts_with("remote-") {
        return ExitCode::from(3);
    }
    match run(&workload, budget) {
        Ok(samples) => {
            for sample in samples {
                println!("{}", sample.json(NAME, &workload));
            }
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{NAME} {workload}: {why}");
            ExitCode::FAILURE
        }
    }
}
