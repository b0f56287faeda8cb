//! `amqps://` from end to end: each face of leveret, against the TLS listener of each RabbitMQ that this machine can
//! start, with certificates made for the test.
#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on says why")]

mod servers;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leveret_adapter::{
    Client, Config, ConnectError, ConnectedClient, ConnectionError, Job, JobContext, JobError, LinkEnd,
    LinkError, Mechanism, PlainPeer, Queue, RetryPolicy, Settlement, Spawn, TlsFailure, Uri,
};
use leveret_async_std::AsyncStd;
use leveret_testkit::rabbitmq::unique_name;
use leveret_tokio::Tokio;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use self::servers::{Clients, Site, sites};

/// Longer than anything here should take, on a machine that does something else as well.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Serialize, Deserialize)]
struct Letter {
    text: String,
}

impl Job for Letter {
    const NAME: &'static str = "letter";
}

/// Runs `behaviour` at each RabbitMQ that asks clients as `clients` says. Futures of async-std run anywhere, as it has
/// threads of its own.
#[expect(clippy::needless_pass_by_value, reason = "a behaviour is written where it is passed")]
fn at_each(clients: Clients, behaviour: impl AsyncFn(&Site)) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for site in sites().iter().filter(|site| site.clients == clients) {
        runtime.block_on(async {
            let outcome = tokio::time::timeout(PATIENCE, behaviour(site)).await;
            assert!(outcome.is_ok(), "it hangs on {site}");
        });
    }
}

fn queue() -> Queue {
    Queue::new(unique_name("leveret.tls"))
        .expect("a good name")
        .retry(RetryPolicy::fixed(2, Duration::from_secs(1)))
}

fn config(uri: &str) -> Config {
    Config::from_uri(uri).expect("a good URI").connection_name("leveret tests")
}

async fn connect<R: Spawn + Default>(config: Config, queue: &Queue) -> Result<ConnectedClient, ConnectError> {
    Client::<R>::new(config).queue(queue.clone()).connect().await
}

/// Why there is no connection by this URI, on either face.
async fn refused(uri: &str) -> LinkError {
    let queue = queue();
    let tokio = connect::<Tokio>(config(uri), &queue).await.map(drop).expect_err("it is refused");
    let async_std = connect::<AsyncStd>(config(uri), &queue).await.map(drop).expect_err("it is refused");
    let ConnectError::Link(error) = tokio else { panic!("{tokio}") };
    assert!(matches!(async_std, ConnectError::Link(_)), "{async_std}");
    error
}

async fn tls_failure(uri: &str) -> TlsFailure {
    match refused(uri).await {
        LinkError::Tls { failure, .. } => *failure,
        other => panic!("{other}"),
    }
}

/// A job of `size` bytes that fails once, from the producer to the second run of its handler, and the end of it all.
async fn run_a_job<R: Spawn + Default>(config: Config, size: usize) {
    let queue = queue();
    let client = connect::<R>(config, &queue).await.expect("it connects");
    client.enqueue(&queue, &Letter { text: "x".repeat(size) }).await.expect("it is enqueued");

    let (stop, stopped) = oneshot::channel::<()>();
    let stop = Mutex::new(Some(stop));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler_saw = seen.clone();
    let worker = client
        .worker(&queue)
        .handler(move |letter: Letter, context: JobContext| {
            let run = (context.attempt(), letter.text.len());
            handler_saw.lock().unwrap_or_else(PoisonError::into_inner).push(run);
            async move { if context.attempt() == 1 { Err(JobError::retry("not yet")) } else { Ok(()) } }
        })
        .on_settled(move |settled| {
            if settled.settlement == Settlement::Done {
                stop.lock().unwrap_or_else(PoisonError::into_inner).take();
            }
        });
    let report = worker.run_until(stopped).await.expect("the worker runs");
    assert_eq!((report.retried, report.done), (1, 1));
    assert_eq!(*seen.lock().unwrap_or_else(PoisonError::into_inner), [(1, size), (2, size)]);
    client.delete(queue.name()).await.expect("it is deleted");
    client.delete(queue.name().dead()).await.expect("it is deleted");
    let closed = client.shutdown(Duration::from_secs(10)).await.expect("it ends");
    assert_eq!((closed.publish, closed.consume), (LinkEnd::Handshake, LinkEnd::Handshake));
}

#[test]
fn a_job_runs_over_tls() {
    at_each(Clients::May, async |site| {
        let ca = &site.ca_file;
        run_a_job::<Tokio>(config(&site.uri("localhost", &[("cacertfile", ca)])), 100).await;
        run_a_job::<AsyncStd>(config(&site.uri("localhost", &[("cacertfile", ca)])), 100).await;
        // An address is in the certificate as well; none is sent as a name.
        run_a_job::<Tokio>(config(&site.uri("127.0.0.1", &[("cacertfile", ca)])), 3 << 20).await;
        run_a_job::<AsyncStd>(config(&site.uri("127.0.0.1", &[("cacertfile", ca)])), 3 << 20).await;
    });
}

#[test]
fn a_connection_that_was_closed_comes_back_with_tls() {
    at_each(Clients::May, async |site| {
        let (vhost, uri) = site.vhost();
        let queue = queue();
        let client = connect::<Tokio>(config(&uri), &queue).await.expect("it connects");
        for text in ["before", "after", "again"] {
            client.enqueue(&queue, &Letter { text: text.to_owned() }).await.expect("it is enqueued");
            // In a virtual host of its own, so that no other test is disturbed.
            let close = ["close_all_connections", "--vhost", &vhost, "test"];
            site.broker.ctl(&close).expect("rabbitmqctl works");
        }
        let counts = loop {
            // A question is not repeated by itself when its connection ends.
            if let Ok(Some(counts)) = client.inspect(queue.name()).await {
                break counts;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert!(counts.ready >= 3, "{counts:?}");
        client.shutdown(Duration::from_secs(10)).await.expect("it ends");
    });
}

#[test]
fn a_client_certificate_logs_in_without_a_password() {
    for clients in [Clients::May, Clients::Must] {
        at_each(clients, async |site| {
            let external = site.uri_of_ada(&[("auth_mechanism", "external".as_ref())]);
            run_a_job::<Tokio>(config(&external), 100).await;
            run_a_job::<AsyncStd>(config(&external), 100).await;
        });
    }
}

#[test]
fn a_certificate_of_nobody_that_the_broker_knows_does_not_log_in() {
    at_each(Clients::May, async |site| {
        let (certificate, key) = site.stranger();
        let uri = site.uri(
            "localhost",
            &[
                ("cacertfile", &site.ca_file),
                ("certfile", &certificate),
                ("keyfile", &key),
                ("auth_mechanism", "external".as_ref()),
            ],
        );
        let error = refused(&uri).await;
        assert!(
            matches!(
                &error,
                LinkError::Connection { error: ConnectionError::AuthenticationRefused { .. }, .. }
            ),
            "{error}"
        );
        assert!(error.is_permanent());
    });
}

#[test]
fn a_listener_that_wants_certificates_refuses_who_has_none() {
    at_each(Clients::Must, async |site| {
        let error = refused(&site.uri("localhost", &[("cacertfile", &site.ca_file)])).await;
        assert!(error.to_string().contains("client certificate"), "{error}");
        assert!(!error.is_permanent());
        run_a_job::<Tokio>(config(&site.uri_of_ada(&[])), 100).await;
    });
}

#[test]
fn a_server_that_cannot_prove_who_it_is_gets_no_password() {
    at_each(Clients::May, async |site| {
        let failure = tls_failure(&site.uri("localhost", &[("cacertfile", &site.other_ca_file)])).await;
        assert!(
            matches!(&failure, TlsFailure::Certificate { name, .. } if name == "localhost"),
            "{failure:?}"
        );
        let failure = tls_failure(&site.uri("localhost", &[])).await;
        let by_the_system =
            matches!(failure, TlsFailure::Certificate { .. } | TlsFailure::NoSystemRoots { .. });
        assert!(by_the_system, "the system trusts nobody of this test: {failure:?}");

        let other_name =
            [("cacertfile", site.ca_file.as_path()), ("server_name_indication", "broker.example".as_ref())];
        let failure = tls_failure(&site.uri("localhost", &other_name)).await;
        assert!(failure.to_string().contains("broker.example"), "{failure}");
    });
}

#[test]
fn whoever_does_not_verify_connects_all_the_same() {
    at_each(Clients::May, async |site| {
        let unverified = config(&site.uri("localhost", &[("verify", "verify_none".as_ref())]));
        run_a_job::<Tokio>(unverified, 100).await;
    });
}

#[test]
fn a_port_without_tls_is_told_for_what_it_is() {
    at_each(Clients::May, async |site| {
        let uri = site.broker.uri().replacen("amqp", "amqps", 1) + "?verify=verify_none";
        assert_eq!(tls_failure(&uri).await, TlsFailure::NotTls { peer: PlainPeer::Amqp });
    });
}

#[test]
fn external_is_offered_where_tls_is_and_gives_way_to_a_password() {
    at_each(Clients::May, async |site| {
        // No client certificate: the server cannot tell who connects by TLS, and the next mechanism is used.
        let uri: Uri = site.uri("localhost", &[("cacertfile", &site.ca_file)]).parse().expect("a good URI");
        let builder = uri.into_builder().auth_mechanisms([Mechanism::Plain, Mechanism::External]);
        run_a_job::<Tokio>(Config::from(builder.build().expect("a good URI")), 100).await;
    });
}
