// Reading a taken task: from what Redis holds to a definition, its handler and a parsed input.
import { TaskError } from '@bullpen/contract'
import { ENVELOPE_VERSION, type Envelope, envelopeSchema } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { FetchedTask } from '../ports/consumer.ts'
import type { Registry, Runnable } from './registry.ts'
import type { CallTimeouts, Timeouts } from './timeouts.ts'

/** What could be read of a task that is ready to run. */
export interface DecodedTask {
  readonly runnable: Runnable
  /** Parsed by the definition's schema. */
  readonly input: unknown
  readonly rawInput: unknown
  readonly meta: Readonly<Record<string, string>>
  readonly correlationId: string | undefined
  readonly timeouts: Timeouts
}

const NO_META: Readonly<Record<string, string>> = Object.freeze({})

/**
 * The reading, or the declared failure that stands in its way. What a newer deploy may have written is retryable, since
 * another slot may be able to read it; what nobody can read is permanent.
 */
export function decodeTask(taken: FetchedTask, registry: Registry): DecodedTask | TaskError {
  const runnable = registry.get(taken.task)
  if (runnable === undefined) {
    return new TaskError(
      'unknown_task',
      `this slot's catalogue has no task ${taken.task}; is the slot older than its producer?`,
    )
  }
  const envelope = readEnvelope(taken.envelope)
  if (envelope instanceof TaskError) return envelope
  const parsed = parseInput(runnable, envelope)
  if (parsed instanceof TaskError) return parsed
  return {
    runnable,
    input: parsed.input,
    rawInput: envelope.input,
    meta: envelope.meta ?? NO_META,
    correlationId: envelope.correlationId,
    timeouts: runnable.limits(callTimeouts(envelope)),
  }
}

/** Undefined when the caller said none, as is usual: then the definition's and the pool's are known already. */
function callTimeouts({ timeoutMs, heartbeatMs, queueMs, totalMs }: Envelope): CallTimeouts | undefined {
  const said = timeoutMs ?? heartbeatMs ?? queueMs ?? totalMs
  return said === undefined ? undefined : { timeoutMs, heartbeatMs, queueMs, totalMs }
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
  return new TaskError('unreadable_envelope', `the stored task can't be read: ${why}`, { retryable: newer })
}

/** A schema's own transform may throw, or be asynchronous: then the input is not one that it accepts. */
function parseInput(runnable: Runnable, envelope: Envelope): { readonly input: unknown } | TaskError {
  try {
    const parsed = runnable.definition.input.safeParse(envelope.input)
    return parsed.success ? { input: parsed.data } : wrongInput(runnable, envelope, parsed.error)
  } catch (cause) {
    const { name } = runnable.definition
    return new TaskError('invalid_input', `the input schema of ${name} threw: ${String(cause)}`, {
      retryable: false,
      cause,
    })
  }
}

function wrongInput(runnable: Runnable, envelope: Envelope, error: z.ZodError): TaskError {
  const { name, version } = runnable.definition
  const places = error.issues.map((issue) => `${['input', ...issue.path].join('.')}: ${issue.message}`).join('; ')
  return new TaskError('invalid_input', `the input does not fit ${name} version ${version}: ${places}`, {
    retryable: envelope.version > version,
  })
}
