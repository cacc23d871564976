// Enqueues tasks at a steady rate, and returns the ids of those that were accepted.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CallOptions, FollowUps, TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import { newTask, planFollowUps } from '@bullpen/engine/internal'
import type { z } from 'zod'
import {
  type besideCalls,
  type call as callTask,
  catalogue,
  type guardedCall,
  type hog,
  type isolated,
  type pill,
  type Work,
  work,
} from '../programs/catalogue.ts'

type Input = z.input<Work['input']>

export interface Load {
  readonly tasks: number
  /** Returns whether to continue at the same rate after these tasks. By default, the load stops. */
  readonly more?: () => boolean
  readonly ratePerSecond: number
  /** Returns the input of the n-th task. */
  readonly input: (n: number) => Input
  /** The definitions that take turns. Defaults to `work` alone. */
  readonly definitions?: readonly Work[]
  /** The caller's options for each task. */
  readonly call?: CallOptions & FollowUps
}

const TICK_MS = 10

/** Resolves with the ids of the accepted tasks when every task has been accepted or rejected. */
export async function enqueueSteadily(
  broker: Broker,
  { tasks, ratePerSecond, input, definitions = [work], call, more = () => false }: Load,
): Promise<readonly string[]> {
  const accepted: string[] = []
  const enqueue = async (n: number): Promise<void> => {
    accepted.push(await enqueueOne(broker, definitions[n % definitions.length] ?? work, input(n), call))
  }
  const startedAt = performance.now()
  const sent: Promise<unknown>[] = []
  while (sent.length < tasks || more()) {
    const due = Math.ceil(((performance.now() - startedAt) / 1_000) * ratePerSecond)
    // A rejected task cannot be lost, because its caller is responsible for repeating it.
    while (sent.length < due && (sent.length < tasks || more())) sent.push(enqueue(sent.length).catch(() => {}))
    await sleep(TICK_MS)
  }
  await Promise.all(sent)
  return accepted
}

type Calls = typeof callTask | typeof guardedCall | typeof besideCalls

/** Resolves with the id once the task has been accepted. */
export async function enqueueOne<D extends Work | typeof isolated | typeof hog | Calls | typeof pill>(
  broker: Broker,
  definition: D,
  input: z.input<D['input']>,
  call: CallOptions & FollowUps = {},
): Promise<TaskId> {
  const enqueuedAt = Date.now()
  const id = createTaskId(definition.queue, enqueuedAt, randomBytes(10))
  const followUps = planFollowUps(call, { catalogue, correlationId: undefined })
  await broker.enqueue(newTask(definition, input, call, { id, enqueuedAt, correlationId: undefined, followUps }))
  return id
}

/** Returns how long a load takes, in ms. */
export function spanMs({ tasks, ratePerSecond }: Load): number {
  return (tasks / ratePerSecond) * 1_000
}
