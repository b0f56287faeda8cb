//! What goes wrong, and what is left afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leveret_tokio::{Client, Config, ConnectError, EnqueueError, JobError, Queue};

use super::{
    Diary, PATIENCE, connect, email, everywhere, everywhere_alone, fresh_queue, on_our_brokers, run, seconds,
    wait_for_ready,
};

async fn refused(config: Config, queue: &Queue) -> ConnectError {
    let connect = Client::new(config).queue(queue.clone()).connect();
    let answer = tokio::time::timeout(PATIENCE, connect).await.expect("it does not hang");
    answer.expect_err("it is refused")
}

#[test]
fn a_wrong_password_is_told_and_not_shown() {
    everywhere(async |place| {
        let uri = place.uri().replace("guest:guest@", "").replace("amqp://", "amqp://nobody:hunter2@");
        let error = refused(Config::from_uri(&uri).expect("a good URI"), &fresh_queue()).await;
        let text = error.to_string();
        assert!(text.contains("user name and password"), "{text} on {place}");
        assert!(!text.contains("hunter2"), "the password is shown");
    });
}

#[test]
fn a_missing_virtual_host_is_told_by_its_name() {
    everywhere(async |place| {
        let server = place.uri().strip_suffix("/%2f").unwrap_or(place.uri());
        let error =
            refused(Config::from_uri(&format!("{server}/nowhere")).expect("a good URI"), &fresh_queue())
                .await;
        assert!(error.to_string().contains("nowhere"), "{error} on {place}");
    });
}

#[test]
fn a_queue_that_exists_with_other_arguments_is_told_with_both_values() {
    everywhere(async |place| {
        let queue = fresh_queue();
        connect(place, &queue).await;
        let other = queue.max_priority(5);
        let error = refused(Config::from_uri(place.uri()).expect("a good URI"), &other).await;
        let ConnectError::Refused(refusal) = &error else { panic!("{error} on {place}") };
        let mismatch = refusal.mismatch().expect("the broker's text is understood");
        assert_eq!(mismatch.argument, "x-max-priority");
        assert_eq!(
            (mismatch.wanted.as_deref(), mismatch.found.as_deref()),
            (Some("5"), Some("10")),
            "on {place}"
        );
    });
}

#[test]
fn a_queue_that_is_deleted_under_its_worker_comes_back() {
    everywhere(async |place| {
        let queue = fresh_queue();
        let client = connect(place, &queue).await;
        let settled = Diary::default();
        let worker = run(&client, &queue, settled.clone(), |_, _| Ok(()));
        client.enqueue(&queue, &email("before")).await.expect("it is accepted");
        settled.wait_for("done", 1).await;
        client.delete(queue.name()).await.expect("it is deleted");
        client.enqueue(&queue, &email("after")).await.expect("the queue is declared again");
        settled.wait_for("done", 2).await;
        worker.stop().await;
    });
}

#[test]
fn after_every_connection_was_closed_each_job_still_comes_to_its_end() {
    everywhere_alone(async |place| {
        let queue = fresh_queue();
        let client = connect(place, &queue).await;
        let settled = Diary::default();
        let slow = Arc::new(AtomicBool::new(true));
        let worker = run(&client, &queue, settled.clone(), {
            let slow = slow.clone();
            move |_, context| {
                if slow.load(Ordering::Relaxed) && context.attempt() == 1 {
                    return Err(JobError::retry("not yet"));
                }
                Ok(())
            }
        });
        for number in 0..50 {
            client.enqueue(&queue, &email(&number.to_string())).await.expect("it is accepted");
        }
        place.close_connections();
        slow.store(false, Ordering::Relaxed);
        client.enqueue(&queue, &email("afterwards")).await.expect("it is accepted");
        // At least once: what had no verdict at the cut was sent again, so some may be done twice.
        settled.wait_for("done", 51).await;
        wait_for_ready(&client, queue.name().as_str(), 0).await;
        worker.stop().await;
    });
}

#[test]
fn during_a_memory_alarm_finished_jobs_are_acknowledged_and_new_ones_wait() {
    everywhere_alone(async |place| {
        let queue = fresh_queue();
        let client = connect(place, &queue).await;
        let settled = Diary::default();
        for number in 0..10 {
            client.enqueue(&queue, &email(&number.to_string())).await.expect("it is accepted");
        }
        place.set_alarm(true);
        // RabbitMQ blocks a connection when it publishes during the alarm.
        let (blocked, to) = (client.clone(), queue.clone());
        let blocked = tokio::spawn(async move { blocked.enqueue(&to, &email("later")).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        let worker = run(&client, &queue, settled.clone(), |_, _| Ok(()));
        settled.wait_for("done", 10).await;
        assert!(!blocked.is_finished(), "nothing is accepted during the alarm on {place}");
        place.set_alarm(false);
        blocked.await.expect("no panic").expect("it is accepted in the end");
        settled.wait_for("done", 11).await;
        worker.stop().await;
    });
}

#[test]
fn a_held_job_survives_a_restart_of_the_broker() {
    on_our_brokers(async |place, broker| {
        let queue = fresh_queue();
        let client = connect(place, &queue).await;
        client.enqueue_in(&queue, &email("ada@example.org"), seconds(3)).await.expect("it is accepted");
        broker.ctl(&["stop_app"]).expect("rabbitmqctl works");
        tokio::time::sleep(seconds(4)).await;
        broker.ctl(&["start_app"]).expect("rabbitmqctl works");
        let settled = Diary::default();
        let worker = run(&client, &queue, settled.clone(), |_, _| Ok(()));
        settled.wait_for("done", 1).await;
        worker.stop().await;
    });
}

#[test]
fn a_handler_that_outlasts_the_grace_is_left_to_the_broker() {
    everywhere(async |place| {
        let queue = fresh_queue();
        let client = connect(place, &queue).await;
        client.enqueue(&queue, &email("slow")).await.expect("it is accepted");
        let diary = Diary::default();
        let notes = diary.clone();
        let worker = client
            .worker(&queue)
            .grace(Duration::from_millis(200))
            .handler(move |_: super::SendEmail, _| {
                notes.note("runs");
                async { std::future::pending().await }
            })
            .run_until(diary.wait_for("runs", 1));
        let report = worker.await.expect("it stops");
        assert_eq!((report.done, report.left), (0, 1), "on {place}");
        wait_for_ready(&client, queue.name().as_str(), 1).await;
    });
}

#[test]
fn what_outlives_its_client_is_told_that_it_is_closed() {
    everywhere(async |place| {
        let queue = fresh_queue();
        let client = connect(place, &queue).await;
        let producer = client.producer(&queue).expect("the queue is known");
        client.shutdown(seconds(5)).await.expect("the driver runs");
        let refused = producer.enqueue(&email("ada@example.org")).await;
        assert!(matches!(refused, Err(EnqueueError::Closed)), "{refused:?} on {place}");
        assert!(
            client.worker(&queue).handler(|_: super::SendEmail, _| async { Ok(()) }).run().await.is_err()
        );
    });
}

#[test]
fn an_unreachable_broker_is_told_within_its_bound() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        // Nobody listens on the port of a listener that is gone.
        let port = {
            #[expect(clippy::disallowed_methods, reason = "a free port is needed")]
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
            listener.local_addr().expect("an address").port()
        };
        let config = Config::from_uri(&format!("amqp://127.0.0.1:{port}")).expect("a good URI");
        let error = refused(config, &fresh_queue()).await;
        assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
    });
}

#[test]
fn a_worker_that_is_stopped_while_it_starts_disturbs_no_other() {
    everywhere(async |place| {
        let (queue, other) = (fresh_queue(), fresh_queue());
        let config = Config::from_uri(place.uri()).expect("a good URI");
        let client = Client::new(config).queue(queue.clone()).queue(other.clone()).connect().await;
        let client = client.expect("the broker is there");
        let settled = Diary::default();
        let worker = run(&client, &queue, settled.clone(), |_, _| Ok(()));
        client.enqueue(&queue, &email("first")).await.expect("it is accepted");
        settled.wait_for("done", 1).await;
        for round in 0..30 {
            // Each round gets a little further before it is told to stop.
            let soon = tokio::time::sleep(Duration::from_micros(150 * round));
            let short = client.worker(&other).handler(|_: super::SendEmail, _| async { Ok(()) });
            short.run_until(soon).await.expect("it stops");
            client.enqueue(&queue, &email("next")).await.expect("it is accepted");
        }
        settled.wait_for("done", 31).await;
        assert_eq!(settled.count("stale"), 0, "no connection is lost on {place}");
        assert_eq!(worker.stop().await.done, 31, "on {place}");
    });
}
