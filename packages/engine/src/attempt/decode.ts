// Decodes a fetched task: finds its definition and handler, reads the stored envelope, and parses the input.
import {
  type GroupId,
  type RetryPolicy,
  type TaskDefinition,
  TaskError,
  type TaskGroup,
  type TaskId,
} from '@bullpen/contract'
import { ENVELOPE_VERSION, type Envelope, envelopeSchema } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { FetchedTask } from '../ports/consumer.ts'
import type { PayloadCodec } from '../ports/payload-codec.ts'
import { redactorOf } from '../redaction/redactor.ts'
import { decodeInput } from '../task/payload/value-text.ts'
import type { Registry, Runnable } from './registry.ts'
import { type CallTimeouts, type Timeouts, totalTimeoutAt } from './timeouts.ts'

/** A task whose stored envelope has been decoded and checked. */
export interface DecodedTask extends Pick<Envelope, 'correlationId' | 'traceContext' | 'depth' | 'run' | 'apiKeyName'> {
  readonly definition: TaskDefinition
  /** The input as parsed by the definition's schema. */
  readonly input: unknown
  /** The input as the caller sent it. */
  readonly rawInput: unknown
  readonly meta: Readonly<Record<string, string>>
  readonly group: TaskGroup | undefined
  /** The task or group because of whose end this task was enqueued. */
  readonly followUpOf: TaskId | GroupId | undefined
  readonly timeouts: Timeouts
  /** The definition's policy, with the caller's own backoff if there is one. */
  readonly retry: RetryPolicy
  /** When the total timeout expires, in ms since 1970. */
  readonly totalTimeoutAt: number | 'none'
}

/** A decoded task with the handler that runs it. */
export interface RunnableTask extends DecodedTask, Pick<Runnable, 'handle'> {}

const NO_META: Readonly<Record<string, string>> = Object.freeze({})

/**
 * Returns the decoded task, or the failure that prevented decoding. The failure is retryable if another worker may be able to
 * run the task, for example because a newer version wrote it. All other failures are permanent.
 */
export function decodeTask(task: FetchedTask, registry: Registry): RunnableTask | TaskError {
  const usual = registry.get(task.task)
  const runnable = task.apart === 'process' ? (usual?.inProcess ?? usual) : usual
  if (runnable === undefined) {
    return new TaskError(
      'unknown_task',
      `this worker's catalogue has no task ${task.task}; is the worker older than the producer?`,
    )
  }
  const stored = readEnvelope(task.envelope)
  if (stored instanceof TaskError) return stored
  if (stored.keptInput !== undefined) return inputGone(stored)
  const envelope = stored.encoded === undefined ? stored : decodedEnvelope(stored, task.codec)
  if (envelope instanceof TaskError) return envelope
  const parsed = parseInput(runnable, envelope)
  if (parsed instanceof TaskError) return parsed
  const timeouts = runnable.timeouts(callTimeouts(envelope))
  const { definition } = runnable
  const { backoff } = envelope
  return {
    definition,
    handle: runnable.handle,
    input: parsed.input,
    rawInput: envelope.input,
    meta: envelope.meta ?? NO_META,
    correlationId: envelope.correlationId,
    traceContext: envelope.traceContext,
    group: envelope.group as TaskGroup | undefined,
    followUpOf: envelope.followUpOf as TaskId | GroupId | undefined,
    depth: envelope.depth,
    run: envelope.run,
    apiKeyName: envelope.apiKeyName,
    timeouts,
    retry: backoff === undefined ? definition.retry : { ...definition.retry, backoff },
    totalTimeoutAt: totalTimeoutAt(envelope.retriedAt ?? task.enqueuedAt, timeouts),
  }
}

/**
 * Returns the caller's timeouts, or undefined if the caller did not set any. In that case, which is the usual one, the prepared
 * timeouts apply.
 */
function callTimeouts({ timeoutMs, heartbeatMs, queueMs, totalMs }: Envelope): CallTimeouts | undefined {
  const any = timeoutMs ?? heartbeatMs ?? queueMs ?? totalMs
  return any === undefined ? undefined : { timeoutMs, heartbeatMs, queueMs, totalMs }
}

function readEnvelope(stored: unknown): Envelope | TaskError {
  const parsed = envelopeSchema.safeParse(stored)
  if (parsed.success) return parsed.data
  const version = typeof stored === 'object' && stored !== null && 'v' in stored ? stored.v : undefined
  const newer = typeof version === 'number' && version > ENVELOPE_VERSION
  const older = version === 1 ? ', the version of Bullpen 0.1.0' : ''
  const why =
    typeof version === 'number' && version !== ENVELOPE_VERSION
      ? `its envelope has version ${version}${older}; this worker reads version ${ENVELOPE_VERSION}`
      : parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ')
  return new TaskError('unreadable_envelope', `the stored task cannot be read: ${why}`, { retryable: newer })
}

/** The consumer adds the input that a pipeline run keeps, if the run still has it. */
function inputGone({ keptInput, run }: Envelope): TaskError {
  return new TaskError(
    'input_gone',
    `the input, ${keptInput} bytes, was kept by ${run?.id ?? 'a run'} until this task had ended, and no longer exists; either the task has already been counted, or Redis has lost data, so start the pipeline again`,
    { retryable: false },
  )
}

/** Decodes the input. A failure is retryable because another worker may have the codec. */
function decodedEnvelope(envelope: Envelope, codec: PayloadCodec | undefined): Envelope | TaskError {
  try {
    return { ...envelope, input: decodeInput(envelope, codec) }
  } catch (cause) {
    return new TaskError(
      'unreadable_payload',
      `the stored input cannot be decoded: ${String(cause)}; give this worker the same codec as the process that enqueued the task`,
      { retryable: true, cause },
    )
  }
}

/** Parses the input. If one of the schema's transforms throws or is asynchronous, the input is invalid. */
function parseInput(runnable: Runnable, envelope: Envelope): { readonly input: unknown } | TaskError {
  try {
    const parsed = runnable.definition.input.safeParse(envelope.input)
    return parsed.success ? { input: parsed.data } : wrongInput(runnable, envelope, parsed.error)
  } catch (cause) {
    const { name } = runnable.definition
    const redactor = redactorOf(runnable.definition, [envelope.input])
    const thrown = redactor === undefined ? cause : redactor.value(cause)
    return new TaskError('invalid_input', `the input schema of ${name} threw: ${String(thrown)}`, {
      retryable: false,
      cause: thrown,
    })
  }
}

function wrongInput(runnable: Runnable, envelope: Envelope, error: z.ZodError): TaskError {
  const { name, version } = runnable.definition
  const issues = error.issues.map((issue) => `${['input', ...issue.path].join('.')}: ${issue.message}`).join('; ')
  const places = redactorOf(runnable.definition, [envelope.input])?.text(issues) ?? issues
  return new TaskError(
    'invalid_input',
    `the input does not match the schema of ${name} version ${version}: ${places}`,
    {
      retryable: envelope.version > version,
    },
  )
}
