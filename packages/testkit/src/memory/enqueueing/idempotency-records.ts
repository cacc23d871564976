// Remembers which calls had an idempotency key, for the memory broker.
import type { Enqueued, TaskStatus } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { type Clock, keyReused } from '@bullpen/engine/internal'

interface Record {
  readonly request: string
  readonly first: Enqueued
  readonly until: number
}

export class IdempotencyRecords {
  readonly #clock: Clock
  readonly #records = new Map<string, Record>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns what an earlier call with the same key has returned. @throws BullpenError `idempotency_key_reused`. */
  find({ id, queue, idempotency }: NewTask): Enqueued | undefined {
    if (idempotency === undefined) return undefined
    const found = this.#records.get(nameOf(queue, idempotency))
    if (found === undefined || found.until <= this.#clock.now()) return undefined
    if (found.request !== idempotency.request) throw keyReused(queue)
    const { action, expectedStartAt } = found.first
    return found.first.id === id ? { id, action, expectedStartAt } : found.first
  }

  /** Remembers what this call returns. `status` is the status of the task with the returned id. */
  remember(
    { queue, idempotency }: NewTask,
    { id, action, expectedStartAt }: Enqueued,
    status: TaskStatus | undefined,
  ): void {
    if (idempotency === undefined) return
    this.#records.set(nameOf(queue, idempotency), {
      request: idempotency.request,
      first: { id, action, expectedStartAt, replayed: { status } },
      until: this.#clock.now() + idempotency.life * 1_000,
    })
  }
}

function nameOf(queue: string, { key, life }: NonNullable<NewTask['idempotency']>): string {
  return `${queue} ${life} ${key}`
}
