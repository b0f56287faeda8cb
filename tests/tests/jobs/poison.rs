//! Messages that a hostile or careless publisher can put on a queue: each is settled, and the next good job runs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use leveret_core::connection::Uri;
use leveret_tokio::{JobContext, JobError};

use super::place::Place;
use super::{Diary, PATIENCE, SendEmail, connect, email, everywhere, fresh_queue, run};

/// The bits of a property list (AMQP 0-9-1, 4.2.6.1), as far as they are used here.
const HEADERS: u16 = 1 << 13;
const PRIORITY: u16 = 1 << 11;
const EXPIRATION: u16 = 1 << 8;
const MESSAGE_ID: u16 = 1 << 7;

/// A message as bytes: its property list and its body.
struct Raw {
    name: &'static str,
    properties: Vec<u8>,
    body: Vec<u8>,
    /// What becomes of it in the end.
    end: &'static str,
}

fn raw(name: &'static str, flags: u16, values: &[u8], body: impl Into<Vec<u8>>, end: &'static str) -> Raw {
    Raw { name, properties: [&flags.to_be_bytes()[..], values].concat(), body: body.into(), end }
}

fn job(to: &str) -> Vec<u8> {
    job_with("send-email", 1, 0, &format!(r#"{{"to":"{to}"}}"#))
}

fn job_with(kind: &str, attempt: u32, deferrals: u32, payload: &str) -> Vec<u8> {
    let id = "11111111-2222-4333-8444-555555555555";
    format!(
        r#"{{"job_id":"{id}","job_type":"{kind}","queue":"elsewhere","attempt":{attempt},"enqueued_at_ms":18446744073709551615,"deferrals":{deferrals},"payload":{payload}}}"#
    )
    .into_bytes()
}

fn long(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).expect("a small test").to_be_bytes()[..], bytes].concat()
}

fn short(bytes: &[u8]) -> Vec<u8> {
    [&[u8::try_from(bytes.len()).expect("a small test")][..], bytes].concat()
}

/// One field of a table: its name, its type and its value.
fn field(name: &[u8], kind: u8, value: &[u8]) -> Vec<u8> {
    [&short(name)[..], &[kind], value].concat()
}

/// Tables within tables, or arrays within arrays.
fn nested(kind: u8, levels: usize) -> Vec<u8> {
    let name: &[u8] = if kind == b'F' { b"\x01a" } else { b"" };
    let level = name.len() + 5;
    let mut value = Vec::new();
    for inner in (0..levels).rev() {
        value.extend_from_slice(name);
        value.push(kind);
        value.extend_from_slice(&u32::try_from(inner * level).expect("a small test").to_be_bytes());
    }
    field(b"deep", kind, &long(&value))
}

/// What RabbitMQ 3.10 takes as a sign that a message goes in circles, if a copy of it keeps it.
fn death(queue: &str) -> Vec<u8> {
    let entry = [
        field(b"count", b'l', &1_i64.to_be_bytes()),
        field(b"reason", b'S', &long(b"expired")),
        field(b"queue", b'S', &long(queue.as_bytes())),
        field(b"exchange", b'S', &long(b"")),
        field(b"routing-keys", b'A', &long(&[&b"S"[..], &long(queue.as_bytes())].concat())),
    ];
    field(b"x-death", b'A', &long(&[&b"F"[..], &long(&entry.concat())].concat()))
}

fn messages(queue: &str) -> Vec<Raw> {
    let every_type = [
        field(b"t", b't', &[1]),
        field(b"b", b'b', &[0x80]),
        field(b"B", b'B', &[0xFF]),
        field(b"s", b's', &[0x80, 0]),
        field(b"u", b'u', &[0xFF, 0xFF]),
        field(b"I", b'I', &[0x80, 0, 0, 0]),
        field(b"i", b'i', &[0xFF; 4]),
        field(b"l", b'l', &[0x80, 0, 0, 0, 0, 0, 0, 0]),
        field(b"f", b'f', &1.5_f32.to_be_bytes()),
        field(b"d", b'd', &2.5_f64.to_be_bytes()),
        field(b"D", b'D', &[255, 0xFF, 0xFF, 0xFF, 0xFF]),
        field(b"S", b'S', &long(b"text \xFF that is none")),
        field(b"x", b'x', &long(&[0xFF; 9])),
        field(b"T", b'T', &[0x7F; 8]),
        field(b"V", b'V', &[]),
        field(b"A", b'A', &long(b"V")),
        field(b"F", b'F', &long(b"")),
        field(b"", b'V', &[]),
        field(&[b'k'; 255], b'V', &[]),
        field(b"twice", b't', &[0]),
        field(b"twice", b't', &[1]),
    ]
    .concat();
    let large = field(b"large", b'S', &long(&[b'x'; 131_030]));
    let cc = field(b"CC", b'A', &long(&[&b"S"[..], &long(b"nowhere")].concat()));
    let counts = [
        field(b"x-delivery-count", b'l', &(-1_i64).to_be_bytes()),
        field(b"x-attempt", b'S', &long(b"many")),
        field(b"x-leveret-mark", b'l', &1_i64.to_be_bytes()),
    ];
    let headers = |fields: &[u8]| long(fields);
    let long_text = "\u{20AC}".repeat(400_000);
    let filled = |to: &str| {
        let mut job = job_with("send-email", 1, 0, &format!(r#"{{"to":"{to}","x":""}}"#));
        let filling = vec![b'x'; (16 << 20) - job.len()];
        job.splice(job.len() - 3..job.len() - 3, filling);
        job
    };
    let mut too_large = filled("ok");
    too_large.push(b' ');
    vec![
        raw("tables 6,000 deep", HEADERS, &headers(&nested(b'F', 6_000)), job("fail once"), "done"),
        raw("arrays 6,000 deep", HEADERS, &headers(&nested(b'A', 6_000)), job("fail once"), "done"),
        raw(
            "a name that is no text",
            HEADERS,
            &headers(&field(b"\xFF\xFE", b't', &[1])),
            job("fail once"),
            "done",
        ),
        raw("an id that is no text", MESSAGE_ID, &short(b"\xC3\x28"), job("fail once"), "done"),
        raw("every type of value", HEADERS, &headers(&every_type), job("fail once"), "done"),
        raw("headers that fill a frame", HEADERS, &headers(&large), job("fail once"), "dead"),
        raw("headers that fill a frame, of a dead letter", HEADERS, &headers(&large), "no job", "dead"),
        raw("a history of deaths", HEADERS, &headers(&death(queue)), job("fail once"), "done"),
        raw("copies to elsewhere", HEADERS, &headers(&cc), job("fail once"), "done"),
        raw("leveret's own headers", HEADERS, &headers(&counts.concat()), job("fail once"), "done"),
        raw("an expiration", EXPIRATION, &short(b"100000"), job("fail once"), "done"),
        raw("a priority", PRIORITY, &[255], job("fail once"), "done"),
        raw("the last attempt", 0, &[], job_with("send-email", u32::MAX, 0, r#"{"to":"fail"}"#), "dead"),
        raw("the last deferral", 0, &[], job_with("send-email", 1, u32::MAX, r#"{"to":"defer"}"#), "dead"),
        raw(
            "a payload of another type",
            0,
            &[],
            job_with("send-email", 1, 0, &format!("{long_text:?}")),
            "dead",
        ),
        raw("a job of another type", 0, &[], job_with("\u{20AC}\\u0007", 1, 0, "null"), "dead"),
        raw("a long last word", 0, &[], job("complain"), "dead"),
        raw("10 MB of brackets", 0, &[], vec![b'['; 10 << 20], "dead"),
        raw(
            "10 MB of brackets in a payload",
            0,
            &[],
            job_with("send-email", 1, 0, &"[".repeat(10 << 20)),
            "dead",
        ),
        raw("16 MiB", 0, &[], filled("ok"), "done"),
        raw("16 MiB whose next attempt would have more", 0, &[], filled("fail once"), "dead"),
        raw("16 MiB and a byte", 0, &[], too_large, "dead"),
        raw("nothing", 0, &[], "", "dead"),
    ]
}

fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    [&[kind][..], &channel.to_be_bytes(), &long(payload), &[0xCE]].concat()
}

/// Publishes to `queue` without asking any library whether that is wise.
fn publish(uri: &str, queue: &str, message: &Raw) {
    let uri = Uri::parse(uri).expect("a good URI");
    #[expect(clippy::disallowed_methods, reason = "this publisher owns its socket")]
    let mut socket = TcpStream::connect((uri.host(), uri.port())).expect("the broker is there");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a bound");
    let mut heard = Vec::new();
    let mut wait_for = |socket: &mut TcpStream, class: u16, method: u16| {
        let wanted = [&[0, 0][..], &class.to_be_bytes(), &method.to_be_bytes()].concat();
        let mut block = [0; 4096];
        while !heard.windows(wanted.len()).any(|window| window[2..] == wanted[2..]) {
            let read = socket.read(&mut block).expect("the broker answers");
            assert!(read > 0, "{}: the broker hung up: {}", message.name, String::from_utf8_lossy(&heard));
            heard.extend_from_slice(&block[..read]);
        }
    };
    let login = [&long(b"")[..], &short(b"PLAIN"), &long(b"\0guest\0guest"), &short(b"en_US")].concat();
    let steps: [(&[u8], (u16, u16)); 4] = [
        (b"AMQP\0\0\x09\x01", (10, 10)),
        (&frame(1, 0, &[&[0, 10, 0, 11][..], &login].concat()), (10, 30)),
        (
            &[
                frame(1, 0, &[0, 10, 0, 31, 7, 0xFF, 0, 2, 0, 0, 0, 0]),
                frame(1, 0, &[&[0, 10, 0, 40][..], &short(b"/"), &[0, 0]].concat()),
            ]
            .concat(),
            (10, 41),
        ),
        (&frame(1, 1, &[0, 20, 0, 10, 0]), (20, 11)),
    ];
    for (said, (class, method)) in steps {
        socket.write_all(said).expect("the broker listens");
        wait_for(&mut socket, class, method);
    }
    let size = (message.body.len() as u64).to_be_bytes();
    let mut bytes = [
        frame(1, 1, &[&[0, 60, 0, 40, 0, 0][..], &short(b""), &short(queue.as_bytes()), &[0]].concat()),
        frame(2, 1, &[&[0, 60, 0, 0][..], &size, &message.properties].concat()),
    ]
    .concat();
    for piece in message.body.chunks(131_072 - 8) {
        bytes.extend(frame(3, 1, piece));
    }
    bytes.extend(frame(1, 1, &[0, 20, 0, 40, 0, 200, 0, 0, 0, 0, 0]));
    socket.write_all(&bytes).expect("the broker listens");
    wait_for(&mut socket, 20, 41);
}

fn handle(job: &SendEmail, context: &JobContext) -> Result<(), JobError> {
    match job.to.as_str() {
        "fail once" if context.attempt() == 1 => Err(JobError::retry("no")),
        "fail" => Err(JobError::retry("no")),
        "defer" => Err(JobError::defer(Duration::ZERO)),
        "complain" => Err(JobError::fatal("\u{20AC}".repeat(400_000))),
        _ => Ok(()),
    }
}

#[test]
fn a_worker_goes_on_after_every_kind_of_poison() {
    everywhere(async |place: &Place| {
        let queue = fresh_queue().max_deferrals(10);
        let client = connect(place, &queue).await;
        let settled = Diary::default();
        let worker = run(&client, &queue, settled.clone(), |job, context| handle(&job, &context));
        let name = queue.name().as_str().to_owned();
        for message in messages(&name) {
            if message.body.len() > 16 << 20 && !place.takes_large_messages() {
                continue;
            }
            let before = (settled.count(message.end), settled.count("done"));
            publish(place.uri(), &name, &message);
            let arrived = tokio::time::timeout(PATIENCE, settled.wait_for(message.end, before.0 + 1)).await;
            assert!(arrived.is_ok(), "{}", message.name);
            client.enqueue(&queue, &email("ok")).await.expect("the broker takes it");
            let done = before.1 + 1 + usize::from(message.end == "done");
            settled.wait_for("done", done).await;
        }
        let report = worker.stop().await;
        assert_eq!((report.stale, report.requeued), (0, 0), "{place}: {report:?}");
    });
}
