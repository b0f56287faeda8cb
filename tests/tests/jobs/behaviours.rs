//! What a job can do.

use leveret_testkit::stranger;
use leveret_tokio::{HoldTtl, JobError, Queue, RetryPolicy};

use super::{Diary, connect, email, everywhere, fresh_queue, on_our_brokers, run, seconds, wait_for_ready};

#[test]
fn a_job_is_enqueued_run_and_acknowledged() {
    everywhere(async |place| {
        let queue = fresh_queue();
        let client = connect(place, &queue).await;
        let diary = Diary::default();
        client.enqueue(&queue, &email("ada@example.org")).await.expect("it is accepted");
        let worker = run(&client, &queue, diary.clone(), |_, _| Ok(()));
        diary.wait_for("done", 1).await;
        assert_eq!(worker.stop().await.done, 1, "on {place}");
        wait_for_ready(&client, queue.name().as_str(), 0).await;
        let closed = client.shutdown(seconds(5)).await.expect("the driver runs");
        assert!(closed.publish.is_clean() && closed.consume.is_clean(), "{closed:?} on {place}");
    });
}

#[test]
fn a_delayed_job_needs_no_worker_and_never_comes_early() {
    everywhere(async |place| {
        let queue = fresh_queue();
        let client = connect(place, &queue).await;
        let diary = Diary::default();
        diary.note("enqueued");
        client.enqueue_in(&queue, &email("ada@example.org"), seconds(2)).await.expect("it is accepted");
        wait_for_ready(&client, queue.name().as_str(), 1).await;
        diary.note("released");
        assert!(diary.between("enqueued", "released") >= seconds(2), "it came early on {place}");
    });
}

#[test]
fn a_failing_job_is_tried_three_times_and_becomes_a_dead_letter() {
    everywhere(async |place| {
        let queue = fresh_queue();
        let client = connect(place, &queue).await;
        let (diary, settled) = (Diary::default(), Diary::default());
        client.enqueue(&queue, &email("ada@example.org")).await.expect("it is accepted");
        let notes = diary.clone();
        let worker = run(&client, &queue, settled.clone(), move |_, context| {
            notes.note(format!("attempt {}", context.attempt()));
            Err(JobError::retry("connection refused"))
        });
        settled.wait_for("dead", 1).await;
        assert_eq!(diary.entries(), ["attempt 1", "attempt 2", "attempt 3"], "on {place}");
        assert!(diary.between("attempt 1", "attempt 2") >= seconds(2), "early on {place}");
        assert!(diary.between("attempt 2", "attempt 3") >= seconds(2), "early on {place}");
        wait_for_ready(&client, &queue.name().dead(), 1).await;
        assert_eq!(worker.stop().await.retried, 2);
    });
}

#[test]
fn a_deferred_job_comes_back_ahead_of_the_backlog_with_its_attempt() {
    everywhere(async |place| {
        let queue = fresh_queue().prefetch(1);
        let client = connect(place, &queue).await;
        let (diary, settled) = (Diary::default(), Diary::default());
        for name in ["limited", "1", "2"] {
            client.enqueue(&queue, &email(name)).await.expect("it is accepted");
        }
        let notes = diary.clone();
        // The worker stops taking jobs while the backlog is built up behind it.
        let worker = run(&client, &queue, settled.clone(), move |job, context| {
            notes.note(format!("{} {} {}", job.to, context.attempt(), context.deferrals()));
            if job.to == "limited" && context.deferrals() == 0 {
                return Err(JobError::defer(seconds(2)));
            }
            Ok(())
        });
        settled.wait_for("done", 2).await;
        worker.stop().await;
        for name in ["3", "4", "5"] {
            client.enqueue(&queue, &email(name)).await.expect("it is accepted");
        }
        wait_for_ready(&client, queue.name().as_str(), 4).await;
        let notes = diary.clone();
        let worker = run(&client, &queue, settled.clone(), move |job, context| {
            notes.note(format!("{} {} {}", job.to, context.attempt(), context.deferrals()));
            Ok(())
        });
        settled.wait_for("done", 6).await;
        worker.stop().await;
        let expected = ["limited 1 0", "1 1 0", "2 1 0", "limited 1 1", "3 1 0", "4 1 0", "5 1 0"];
        assert_eq!(diary.entries(), expected, "on {place}");
    });
}

#[test]
fn a_short_delay_does_not_wait_behind_a_long_one() {
    everywhere(async |place| {
        let queue = fresh_queue();
        let client = connect(place, &queue).await;
        client.enqueue_in(&queue, &email("late"), seconds(20)).await.expect("it is accepted");
        client.enqueue_in(&queue, &email("soon"), seconds(1)).await.expect("it is accepted");
        wait_for_ready(&client, queue.name().as_str(), 1).await;
        let long = HoldTtl::from_millis(20_000).expect("in range");
        let held = client.inspect(queue.name().hold(long)).await.expect("the broker answers");
        assert_eq!(held.map(|counts| counts.ready), Some(1), "on {place}");
    });
}

#[test]
fn a_hold_queue_that_is_used_longer_than_its_lease_keeps_every_job() {
    everywhere(async |place| {
        let queue = fresh_queue();
        let client = connect(place, &queue).await;
        // The lease of a hold of one second is two seconds; this goes on for five.
        for number in 0..50 {
            let job = email(&number.to_string());
            client.enqueue_in(&queue, &job, seconds(1)).await.expect("it is accepted");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        // A slow confirm makes a second copy of a job, and never a loss: each is looked for by its number.
        let diary = Diary::default();
        let notes = diary.clone();
        let worker = run(&client, &queue, Diary::default(), move |job, _| {
            notes.note(job.to);
            Ok(())
        });
        for number in 0..50 {
            diary.wait_for(&number.to_string(), 1).await;
        }
        worker.stop().await;
    });
}

#[test]
fn a_body_that_is_no_job_is_moved_aside_and_the_next_job_runs() {
    everywhere(async |place| {
        let queue = fresh_queue();
        let client = connect(place, &queue).await;
        for body in [&b"{"[..], b"\xff\xfe", b"[]", b"null", b""] {
            let (uri, name, body) = (place.uri().to_owned(), queue.name().to_string(), body.to_vec());
            let publish = tokio::task::spawn_blocking(move || stranger::publish_body(&uri, &name, body));
            publish.await.expect("no panic").expect("it is published");
        }
        client.enqueue(&queue, &email("ada@example.org")).await.expect("it is accepted");
        let settled = Diary::default();
        let worker = run(&client, &queue, settled.clone(), |_, _| Ok(()));
        settled.wait_for("done", 1).await;
        settled.wait_for("dead", 5).await;
        wait_for_ready(&client, &queue.name().dead(), 5).await;
        assert_eq!(worker.stop().await.dead_lettered, 5, "on {place}");
    });
}

#[test]
fn a_thousand_jobs_at_once_are_each_confirmed_and_each_run_once() {
    everywhere(async |place| {
        let queue = fresh_queue().prefetch(100);
        let client = connect(place, &queue).await;
        let settled = Diary::default();
        let worker = run(&client, &queue, settled.clone(), |_, _| Ok(()));
        let tasks: Vec<_> = (0..1_000)
            .map(|number| {
                let (client, queue) = (client.clone(), queue.clone());
                tokio::spawn(async move { client.enqueue(&queue, &email(&number.to_string())).await })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic").expect("it is accepted");
        }
        settled.wait_for("done", 1_000).await;
        assert_eq!(worker.stop().await.done, 1_000, "on {place}");
    });
}

#[test]
fn the_broker_shows_exactly_the_documented_arguments() {
    on_our_brokers(async |place, broker| {
        let queue =
            Queue::new(fresh_queue().name()).expect("a good name").retry(RetryPolicy::fixed(2, seconds(30)));
        let client = connect(place, &queue).await;
        client.enqueue_in(&queue, &email("ada@example.org"), seconds(30)).await.expect("it is accepted");
        let name = queue.name();
        let arguments = |queue: &str| {
            let found = broker.queue_arguments(queue).expect("rabbitmqctl works");
            found.expect("the queue is there")
        };
        assert_eq!(arguments(name.as_str()), ["x-max-priority,10", "x-queue-type,classic"], "on {place}");
        assert_eq!(arguments(&name.dead()), ["x-queue-type,classic"], "on {place}");
        assert_eq!(
            arguments(&name.hold(HoldTtl::from_millis(30_000).expect("in range"))),
            [
                "x-dead-letter-exchange,".to_owned(),
                format!("x-dead-letter-routing-key,{name}"),
                "x-expires,60000".to_owned(),
                "x-message-ttl,30000".to_owned(),
                "x-queue-type,classic".to_owned(),
            ],
            "on {place}"
        );
    });
}
