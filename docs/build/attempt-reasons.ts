// What each reason of an attempt means and what to do about it: the compiler asks for an entry when one is added.
import type { EndReason } from '@bullpen/contract'

interface Reason {
  readonly cause: string
  readonly action: string
}

export const REASON_ADVICE: Readonly<Record<EndReason, Reason>> = {
  unexpected_error: {
    cause: 'The handler threw an error that nothing declares: a panic.',
    action: 'Fix the bug, or declare the failure with `TaskError` or `classify`.',
  },
  invalid_output: {
    cause:
      'The handler returned something that the output schema rejects, that JSON cannot hold, or that is too large.',
    action: 'Fix the handler or the schema; store large results elsewhere.',
  },
  escaped_error: {
    cause:
      'An error was thrown outside the handler: in a timer, in an event listener, or in a promise that nothing awaits.',
    action: 'Await the promise, or handle the error event; the stack names the line.',
  },
  isolate_died: {
    cause: "The handler's thread or child process exited or crashed.",
    action: "Look for `process.exit` or a native crash; the log's `cause` has the exit code or signal.",
  },
  out_of_memory: {
    cause: "The handler's child process reached its memory limit.",
    action: 'Raise `memoryLimit`, or stream the data.',
  },
  process_lost: {
    cause: 'The worker process died under this task too many times; the task is dead.',
    action: 'Find what kills the process, such as the kernel’s out-of-memory killer, before running the task again.',
  },
  cancelled: { cause: 'Someone cancelled the task.', action: 'Nothing.' },
  slot_stopped: { cause: 'The slot was stopped with `bullpen stop --hard`.', action: 'Nothing: the task runs again.' },
  queue_shutdown: {
    cause: "The queue's fleet was drained, and the queue cancels its tasks on shutdown.",
    action: 'Enqueue the task again if it is still wanted.',
  },
  drain: {
    cause: 'The worker drained and the attempt did not end in time.',
    action: 'Nothing: the task runs again. If it happens on every deploy, see [Drain](../explanation/drain.md).',
  },
  parent_closed: {
    cause: "The program closed the worker's `parent` signal.",
    action: 'Nothing: the task runs again.',
  },
  lock_lost: {
    cause: 'The worker could not renew its lock: its event loop was blocked, or Redis was unreachable.',
    action: 'Another worker runs the task. See [A stalled event loop](../runbook/event-loop-stalled.md).',
  },
  snoozed: { cause: 'The handler called `ctx.snooze`.', action: 'Nothing.' },
  rate_limited: { cause: 'The handler threw `rateLimited(…)`.', action: 'Nothing: the queue resumes by itself.' },
  run_timeout: {
    cause: 'The attempt ran for longer than `timeout`.',
    action: 'Raise the timeout, or find out what the handler waits for.',
  },
  heartbeat_timeout: {
    cause: 'The handler gave no sign of life for `heartbeatTimeout`.',
    action: 'Call `heartbeat()` or `progress()` more often, or find out where it hangs.',
  },
  total_timeout: {
    cause: 'The total timeout passed over all attempts.',
    action: 'Raise `totalTimeout`, or find out why the earlier attempts failed.',
  },
  queue_timeout: {
    cause: 'The task waited longer than `queueTimeout` and was never started.',
    action: 'Add workers; see [The backlog grows](../runbook/backlog-grows.md).',
  },
}
