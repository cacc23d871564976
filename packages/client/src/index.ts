// Exports the client's public API.

// Create a client:

export type { TaskTransport } from '@bullpen/contract/internal'
export { type Client, type ClientOptions, createClient, type TaskClient } from './client.ts'
export { type HttpOptions, type HttpTransport, http } from './http/http-transport.ts'

// Enqueue tasks, wait for them and control the fleet:

export type { BulkEnqueued } from '@bullpen/contract/internal'
export type { BulkOptions, EnqueueBulkOptions } from './calls/bulk-calls.ts'
export type { EventFilter, QueueEvent } from './calls/event-calls.ts'
export type { FleetOrder } from './calls/fleet-calls.ts'
export type { CreateGroupOptions, GroupCalls } from './calls/group-calls.ts'
export type { RunCalls, StartPipelineOptions } from './calls/run-calls.ts'
export type { ScheduleCalls, ScheduleSettings } from './calls/schedule-calls.ts'
export type { EnqueueOptions } from './calls/task-calls.ts'
export type { AddOptions, GroupHandle, GroupStreamEvent } from './group-handle.ts'
export type { IdempotencyOptions } from './idempotency-key.ts'
export { RunEndedError, type RunHandle } from './run-handle.ts'
export type { CancelOptions, DroppedTask, TaskHandle, TaskOf, TaskStreamEvent, WaitOptions } from './task-handle.ts'

// Errors:

export { type CallOutcome, type ClientErrorCode, ProblemError } from '@bullpen/contract/internal'
export { ResultTimeoutError } from './result-timeout-error.ts'
export { TaskEndedError } from './task-ended-error.ts'
