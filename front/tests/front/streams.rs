//! Streams: wake-ups, joined chunks, comments, slow readers, and clients that leave.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::core::wait_until;
use crate::support::{Client, Server, request, timed};

/// Begins a stream and returns its client after the head.
fn begin(server: &Server, path: &str) -> Client {
    let mut client = server.client();
    client.send(&request(if path == "/endless" { "GET" } else { "POST" }, path, "", ""));
    let head = client.head().unwrap();
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    client
}

#[test]
fn chunks_arrive_as_the_core_makes_them() {
    let server = Server::new();
    let mut client = begin(&server, "/stream");
    let call = server.mock.call(0);
    for chunk in ["data: 1\n\n", "data: 2\n\n"] {
        call.feed(chunk.as_bytes());
        assert_eq!(client.chunk().as_deref(), Some(chunk));
    }
    call.feed_all(&["a", "", "b", "c"]);
    assert_eq!(client.chunk().as_deref(), Some("abc"), "chunks that are ready at once are joined");
    call.end();
    assert_eq!(client.chunk(), None);
    server.mock.wait_freed(1);
    assert!(!call.is_cancelled());
    // The connection is as good as new.
    client.send(&request("GET", "/health", "", ""));
    assert_eq!(client.answer().status, 200);
}

#[test]
fn the_last_chunk_may_come_with_the_end() {
    let server = Server::new();
    let mut client = begin(&server, "/stream");
    let call = server.mock.call(0);
    call.feed_all(&["data: [DONE]\n\n"]);
    call.end();
    assert_eq!(client.chunk().as_deref(), Some("data: [DONE]\n\n"));
    assert_eq!(client.chunk(), None);
}

#[cfg(target_os = "linux")]
fn threads() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap();
    line.trim().parse().unwrap()
}

/// In a process of its own: other tests start threads too.
#[cfg(target_os = "linux")]
#[test]
fn a_stream_that_waits_has_no_thread() {
    const ALONE: &str = "FRONT_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let name = "streams::a_stream_that_waits_has_no_thread";
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        let output = alone.args([name, "--exact", "--test-threads=1"]).env(ALONE, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        return;
    }
    let server = Server::new();
    // One after the other: each handler needs a thread until it returns.
    let mut clients: Vec<Client> = (0..200).map(|_| begin(&server, "/stream")).collect();
    assert!(threads() < 20, "{} threads for 200 streams", threads());
    for (number, client) in clients.iter_mut().enumerate() {
        server.mock.call(number).feed(b"x");
        assert_eq!(client.chunk().as_deref(), Some("x"));
    }
    assert!(threads() < 20, "{} threads after 200 chunks", threads());
    assert_eq!(server.mock.call(0).waits.load(Ordering::SeqCst), 0, "no call_next may block");
}

#[test]
fn a_stream_that_cannot_be_woken_is_read_by_a_thread() {
    let server = Server::new();
    let mut client = begin(&server, "/blocking");
    let call = server.mock.call(0);
    for chunk in ["one", "two"] {
        call.feed(chunk.as_bytes());
        assert_eq!(client.chunk().as_deref(), Some(chunk));
    }
    assert!(call.waits.load(Ordering::SeqCst) >= 2);
    call.end();
    assert_eq!(client.chunk(), None);
}

#[test]
fn a_stream_without_data_gets_comments() {
    let server = Server::new();
    let mut client = begin(&server, "/stream");
    let (chunk, time) = timed(|| client.chunk());
    assert_eq!(chunk.as_deref(), Some(":\n\n"));
    assert!(time < Duration::from_secs(3), "{time:?}");
    server.mock.call(0).feed(b"x");
    // On a slow machine more comments come before it.
    let next = std::iter::from_fn(|| client.chunk()).find(|chunk| chunk != ":\n\n");
    assert_eq!(next.as_deref(), Some("x"));
    assert_eq!(client.chunk().as_deref(), Some(":\n\n"));
}

#[test]
fn a_client_that_leaves_cancels_its_stream() {
    let server = Server::new();
    for (number, path) in ["/stream", "/blocking", "/endless"].into_iter().enumerate() {
        let client = begin(&server, path);
        let call = server.mock.call(number);
        drop(client);
        wait_until("the call is cancelled", || call.is_cancelled());
        server.mock.wait_freed(number + 1);
    }
    assert_eq!(server.live_calls(), 0);
}

#[test]
fn a_client_that_leaves_cancels_a_handler_that_runs() {
    let server = Server::with(|options| options.max_calls = 1);
    let mut client = server.client();
    client.send(&request("POST", "/hold", "", "{}"));
    let call = server.mock.call(0);
    drop(client);
    wait_until("the call is cancelled", || call.is_cancelled());
    server.mock.wait_freed(1);
    wait_until("its place is free", || server.ask("POST", "/echo", "", "{}").status == 201);
}

#[test]
fn a_client_that_leaves_before_its_call_is_made_cancels_it() {
    let server = Server::new();
    let mut client = server.client();
    client.send(&request("POST", "/late", "", "{}"));
    wait_until("the call is being made", || server.mock.waiting.load(Ordering::SeqCst) == 1);
    drop(client);
    wait_until("the connection is closed", || server.open_connections() == 0);
    server.mock.is_open.store(true, Ordering::SeqCst);
    server.mock.wait_freed(1);
    assert!(server.mock.call(0).is_cancelled());
}

#[test]
fn a_client_that_sends_the_end_has_left() {
    let server = Server::new();
    let client = begin(&server, "/stream");
    let call = server.mock.call(0);
    client.half_close();
    wait_until("the call is cancelled", || call.is_cancelled());
}

#[test]
fn a_reader_that_takes_nothing_is_cancelled_after_the_deadline() {
    let server = Server::with(|options| options.write_ms = 400);
    let client = begin(&server, "/endless");
    let call = server.mock.call(0);
    wait_until("the deadline is over", || call.is_cancelled());
    server.mock.wait_freed(1);
    drop(client);
}

#[test]
fn a_slow_reader_holds_up_the_core_and_no_other_client() {
    let server = Server::new();
    let mut client = begin(&server, "/endless");
    let call = server.mock.call(0);
    // The buffers of both sockets fill up, then no chunk is made.
    let count = || call.polls.load(Ordering::SeqCst);
    let mut last = 0;
    wait_until("no more chunks are made", || {
        let before = count();
        std::thread::sleep(Duration::from_millis(100));
        before > 0 && before == count()
    });
    for _ in 0..5 {
        let (answer, time) = timed(|| server.get("/health"));
        assert_eq!(answer.status, 200);
        assert!(time < Duration::from_secs(2), "{time:?}");
        last = count();
    }
    assert!(last * (16 << 10) < 64 << 20, "{last} chunks of 16 KiB wait for the reader");
    client.read_some(8 << 20);
    wait_until("chunks are made again", || count() > last);
    assert!(!call.is_cancelled());
}

/// Each chunk has to arrive before the stream looks at the core by itself, a second after it did so last.
#[test]
fn no_wake_up_is_lost_between_threads() {
    const STREAMS: usize = 16;
    const ROUNDS: usize = 60;
    let server = Server::new();
    let mut clients: Vec<Client> = (0..STREAMS).map(|_| begin(&server, "/quiet")).collect();
    let calls: Vec<_> = (0..STREAMS).map(|number| server.mock.call(number)).collect();
    for round in 0..ROUNDS {
        let text = format!("{round};");
        // After different times, so that some chunks arrive while their stream is about to wait.
        std::thread::sleep(Duration::from_micros(37 * round as u64 % 500));
        let ((), time) = timed(|| {
            std::thread::scope(|scope| {
                for part in calls.chunks(STREAMS / 4) {
                    scope.spawn(|| part.iter().for_each(|call| call.feed(text.as_bytes())));
                }
                for client in &mut clients {
                    assert_eq!(client.chunk().as_deref(), Some(text.as_str()));
                }
            });
        });
        assert!(time < Duration::from_millis(700), "round {round} took {time:?}");
    }
    calls.iter().for_each(|call| call.end());
    for client in &mut clients {
        assert_eq!(client.chunk(), None);
    }
    server.mock.wait_freed(STREAMS);
}

/// A stream that is not woken still ends: it was cancelled from elsewhere, for example.
#[test]
fn a_stream_is_looked_at_without_a_wake_up() {
    let server = Server::new();
    let mut client = begin(&server, "/quiet");
    let (chunk, time) = timed(|| {
        server.mock.call(0).end_silently();
        client.chunk()
    });
    assert_eq!(chunk, None);
    assert!(time < Duration::from_secs(5), "{time:?}");
}

#[test]
fn when_half_of_the_clients_leave_the_others_finish_and_all_calls_are_freed() {
    const CLIENTS: usize = 64;
    let server = Server::new();
    let paths = ["/stream", "/blocking"];
    let mut clients: Vec<Option<Client>> =
        (0..CLIENTS).map(|number| Some(begin(&server, paths[number / 2 % 2]))).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        server.mock.call(number).feed(b"first");
        if number % 2 == 0 {
            *client = None;
        }
        server.mock.call(number).feed(b"last");
        if number % 2 == 1 {
            server.mock.call(number).end();
        }
    }
    for client in clients.iter_mut().flatten() {
        let mut text = String::new();
        while let Some(chunk) = client.chunk() {
            text += &chunk.replace(":\n\n", "");
        }
        assert_eq!(text, "firstlast");
    }
    server.mock.wait_freed(CLIENTS);
    assert_eq!(server.live_calls(), 0);
}
