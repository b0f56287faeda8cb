//! Jobs that are enqueued under one and end under the other.

use std::time::{Duration, Instant};

use queuey_core::EnqueueOptions;

use super::everywhere;
use super::services::{Answer, Ours, Run, Theirs, WAIT};

/// The first run of a job.
fn first(id: &str, to: &str) -> Run {
    Run { id: id.to_owned(), to: to.to_owned(), attempt: 1, deferrals: 0, correlation_id: None }
}

#[test]
fn a_job_of_leveret_runs_under_queuey_and_one_of_queuey_under_leveret() {
    everywhere(async |uri, place| {
        let (ours, theirs) = (Ours::<0>::connect(uri).await, Theirs::<0>::connect(uri).await);
        let id = ours.enqueue("ada", Duration::ZERO).await;
        assert_eq!(theirs.run(1, Answer::Done).await, [first(&id, "ada")], "on {place}");

        let id = theirs.enqueue("grace", EnqueueOptions::now().correlation_id("trace-1")).await;
        let run = Run { correlation_id: Some("trace-1".to_owned()), ..first(&id, "grace") };
        assert_eq!(ours.run(1, Answer::Done).await, [run], "on {place}");

        theirs.end().await;
        ours.wait_for_ready(ours.queue.name().as_str(), 0).await;
        ours.end().await;
    });
}

#[test]
fn a_delayed_job_of_either_waits_in_the_same_queue_and_comes_to_the_other_no_sooner_than_due() {
    everywhere(async |uri, place| {
        let (ours, theirs) = (Ours::<1>::connect(uri).await, Theirs::<1>::connect(uri).await);
        let began = now();
        let first_id = ours.enqueue("ada", WAIT).await;
        assert_eq!(theirs.run(1, Answer::Done).await, [first(&first_id, "ada")], "on {place}");
        assert!(began.elapsed() >= WAIT, "early on {place}");

        let began = now();
        let second_id = theirs.enqueue("grace", EnqueueOptions::after(WAIT)).await;
        assert_eq!(ours.run(1, Answer::Done).await, [first(&second_id, "grace")], "on {place}");
        assert!(began.elapsed() >= WAIT, "early on {place}");
        theirs.end().await;
        ours.end().await;
    });
}

#[test]
fn a_job_that_fails_and_is_deferred_under_one_goes_on_under_the_other() {
    everywhere(async |uri, place| {
        let (ours, theirs) = (Ours::<2>::connect(uri).await, Theirs::<2>::connect(uri).await);
        let id = theirs.enqueue("ada", EnqueueOptions::now().correlation_id("trace-1")).await;
        let run = |attempt, deferrals| {
            let correlation_id = Some("trace-1".to_owned());
            [Run { attempt, deferrals, correlation_id, ..first(&id, "ada") }]
        };
        assert_eq!(ours.run(1, Answer::Fail).await, run(1, 0), "on {place}");
        assert_eq!(theirs.run(1, Answer::Fail).await, run(2, 0), "on {place}");
        assert_eq!(ours.run(1, Answer::Defer).await, run(3, 0), "on {place}");
        assert_eq!(theirs.run(1, Answer::Defer).await, run(3, 1), "on {place}");
        assert_eq!(ours.run(1, Answer::Fail).await, run(3, 2), "on {place}");
        assert_eq!(theirs.run(1, Answer::Fail).await, run(4, 2), "on {place}");
        // The fifth attempt is the last one.
        assert_eq!(ours.run(1, Answer::Fail).await, run(5, 2), "on {place}");
        ours.wait_for_ready(&ours.queue.name().dead(), 1).await;
        assert_eq!(ours.ready(ours.queue.name().as_str()).await, Some(0), "on {place}");
        theirs.end().await;
        ours.end().await;
    });
}

#[test]
fn a_job_that_one_defers_comes_to_the_other_ahead_of_the_backlog() {
    everywhere(async |uri, place| {
        let (ours, theirs) = (Ours::<3>::connect(uri).await, Theirs::<3>::connect(uri).await);
        let names = |runs: Vec<Run>| runs.into_iter().map(|run| run.to).collect::<Vec<_>>();
        let work = ours.queue.name().as_str();

        ours.enqueue("limited", Duration::ZERO).await;
        assert_eq!(names(theirs.run(1, Answer::Defer).await), ["limited"], "on {place}");
        ours.enqueue("1", Duration::ZERO).await;
        theirs.enqueue("2", EnqueueOptions::now()).await;
        ours.wait_for_ready(work, 3).await;
        assert_eq!(names(ours.run(3, Answer::Done).await), ["limited", "1", "2"], "on {place}");

        theirs.enqueue("limited", EnqueueOptions::now()).await;
        assert_eq!(names(ours.run(1, Answer::Defer).await), ["limited"], "on {place}");
        theirs.enqueue("1", EnqueueOptions::now()).await;
        ours.enqueue("2", Duration::ZERO).await;
        ours.wait_for_ready(work, 3).await;
        assert_eq!(names(theirs.run(3, Answer::Done).await), ["limited", "1", "2"], "on {place}");

        // queuey can enqueue a job that comes back ahead; it is deferred no time.
        ours.enqueue("1", Duration::ZERO).await;
        theirs.enqueue("ahead", EnqueueOptions::deferred(WAIT)).await;
        ours.wait_for_ready(work, 2).await;
        let runs = ours.run(2, Answer::Done).await;
        assert_eq!(runs.iter().map(|run| run.deferrals).collect::<Vec<_>>(), [0, 0], "on {place}");
        assert_eq!(names(runs), ["ahead", "1"], "on {place}");
        theirs.end().await;
        ours.end().await;
    });
}

#[test]
fn a_backlog_that_leveret_has_begun_queuey_finishes() {
    everywhere(async |uri, place| {
        let (ours, theirs) = (Ours::<4>::connect(uri).await, Theirs::<4>::connect(uri).await);
        let mut ids = Vec::new();
        for number in 0..10 {
            let to = number.to_string();
            ids.push(ours.enqueue(&to, Duration::ZERO).await);
            ids.push(theirs.enqueue(&to, EnqueueOptions::now()).await);
        }
        let mut runs = ours.run(7, Answer::Done).await;
        runs.extend(theirs.run(13, Answer::Done).await);
        let ran: Vec<&String> = runs.iter().map(|run| &run.id).collect();
        assert_eq!(ran, ids.iter().collect::<Vec<_>>(), "in the order of the queue, on {place}");
        theirs.end().await;
        ours.end().await;
    });
}

#[expect(clippy::disallowed_methods, reason = "a broker's timers run in real time")]
fn now() -> Instant {
    Instant::now()
}
