// POST /v1/commands sends a command to the fleet, waits for the workers' responses, and logs the command for auditing.
import { BullpenError, type Catalogue, type CommandView, type Log } from '@bullpen/contract'
import { type CommandSpec, commandRequestSchema, type commandWaitSchema } from '@bullpen/contract/internal'
import { type Command, type CommandRecord, outcomeOf } from '@bullpen/engine/internal'
import type { z } from 'zod'
import { requesterOf } from '../auth/requester.ts'
import { abortOnFirst } from '../http/abort-on-first.ts'
import type { ApiContext } from '../http/context.ts'
import { queueNotFound } from '../http/problems/queue-not-found.ts'
import type { Call } from '../http/routes/route.ts'
import { commandView } from '../views/command-view.ts'

const ID_BYTES = 12

export function sendCommand(context: ApiContext) {
  const { catalogue, broker, fleet, closing, log, randomBytes, apiKeyNames } = context
  return async ({
    query,
    body,
    request,
    reply,
  }: Call<unknown, z.output<typeof commandWaitSchema>>): Promise<CommandView> => {
    // The body is parsed again to apply the defaults, because the validated body is still as the caller sent it.
    const { id = Buffer.from(randomBytes(ID_BYTES)).toString('hex'), by, ...spec } = commandRequestSchema.parse(body)
    const { queue } = spec
    if (spec.action === 'limit') assertKnown(spec.apiKeyName, apiKeyNames)
    if (queue !== undefined && !catalogue.queues.includes(queue)) throw queueNotFound(queue, catalogue.queues)
    if (spec.action === 'limit') {
      assertTakesTurns(spec, catalogue)
      assertDefined(spec, catalogue)
    }
    if (spec.action === 'breaker') assertHasBreaker(spec, catalogue)
    const command = { id, spec, by: requesterOf(request, by) }
    let record = await fleet.send(command)
    try {
      if (cancelsWaiting(spec, catalogue)) {
        // A repeated command cancels the same tasks as the first one, and none at all once the queue has been resumed.
        const { drain } = await fleet.queueSettings(spec.queue)
        const filter = { queue: spec.queue, before: record.at, reason: 'queue_shutdown', by: command.by } as const
        if (drain?.command === id) await broker.cancelMany(filter)
      }
      if (outcomeOf(record.responses) === 'pending' && query.wait > 0) {
        record =
          (await abortOnFirst(query.wait * 1_000, closing, reply.raw, (signal) => fleet.awaitResponses(id, signal))) ??
          record
      }
    } finally {
      // The command is stored even if the responses to it cannot be read.
      audit(log, command, record, request.id)
    }
    return commandView(record)
  }
}

/** The error does not repeat the name, which may be a part of a key. @throws BullpenError `invalid_request`. */
function assertKnown(apiKeyName: string | undefined, known: readonly string[]): void {
  if (apiKeyName === undefined || known.includes(apiKeyName)) return
  const message = `no API key has this name; expected one of ${known.join(', ')}`
  throw new BullpenError('invalid_request', `/apiKeyName: ${message}`, {
    errors: [{ pointer: '/apiKeyName', message }],
  })
}

/**
 * The limits of concurrency keys apply only where the keys have lanes.
 *
 * @throws BullpenError `invalid_request`.
 */
function assertTakesTurns(spec: Extract<CommandSpec, { action: 'limit' }>, catalogue: Catalogue): void {
  const { queue, concurrencyKey, concurrencyPerKey, ratePerKey } = spec
  const isOfKeys = concurrencyKey !== undefined || concurrencyPerKey !== undefined || ratePerKey !== undefined
  if (queue === undefined || !isOfKeys || catalogue.queue(queue).fairness !== undefined) return
  const message = `the concurrency keys of queue '${queue}' take no turns, so they cannot be limited; define the queue with fairness: true`
  throw new BullpenError('invalid_request', `/queue: ${message}`, { errors: [{ pointer: '/queue', message }] })
}

/** A command can only limit what the catalogue defines. @throws BullpenError `invalid_request`. */
function assertDefined(
  { queue = '', task, permits = {} }: Extract<CommandSpec, { action: 'limit' }>,
  catalogue: Catalogue,
): void {
  const refuse = (pointer: string, message: string): never => {
    throw new BullpenError('invalid_request', `${pointer}: ${message}`, { errors: [{ pointer, message }] })
  }
  const tasks = catalogue.definitions.flatMap((definition) => (definition.queue === queue ? [definition.name] : []))
  if (task !== undefined && !tasks.some((name) => name === task)) {
    refuse('/task', `queue '${queue}' has no task definition '${task}'; expected one of ${tasks.join(', ')}`)
  }
  const defined = Object.keys(catalogue.queue(queue).permits ?? {})
  const unknown = Object.keys(permits).find((name) => !defined.includes(name))
  if (unknown === undefined) return
  const expected =
    defined.length === 0 ? 'its definition has no limits.permits' : `expected one of ${defined.join(', ')}`
  refuse('/permits', `queue '${queue}' has no permits named '${unknown}'; ${expected}`)
}

/** @throws BullpenError `invalid_request`. */
function assertHasBreaker({ queue, service }: Extract<CommandSpec, { action: 'breaker' }>, catalogue: Catalogue): void {
  const services = Object.keys(catalogue.queue(queue).breakers ?? {})
  if (services.includes(service)) return
  const expected = services.length === 0 ? 'its definition has no breakers' : `expected one of ${services.join(', ')}`
  const message = `queue '${queue}' has no circuit breaker '${service}'; ${expected}`
  throw new BullpenError('invalid_request', `/service: ${message}`, { errors: [{ pointer: '/service', message }] })
}

/**
 * Returns whether the command also cancels the queue's waiting tasks. This is the case if the command drains the whole queue, the
 * queue is defined with `onShutdown: 'cancel'`, and the mode is not `light`. A light drain finishes the waiting tasks instead.
 */
function cancelsWaiting(spec: CommandSpec, catalogue: Catalogue): spec is CommandSpec & { readonly queue: string } {
  if (spec.action !== 'drain' || spec.worker !== undefined || spec.queue === undefined) return false
  return spec.mode !== 'light' && catalogue.queue(spec.queue).onShutdown === 'cancel'
}

function audit(log: Log, { id, spec, by }: Omit<Command, 'at'>, { responses }: CommandRecord, requestId: string): void {
  log.info({ command: id, spec, by, outcome: outcomeOf(responses), requestId }, 'fleet command sent')
}
