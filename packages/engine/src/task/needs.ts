// Determines the turn of a new task, what it needs to start besides a slot, and how much of it a queue has.
import type { Catalogue, LimiterKind, QueueDefinition, TaskDefinition } from '@bullpen/contract'
import { weightOf } from '@bullpen/contract/internal'
import type { Need, Turn } from '../ports/broker/new-task.ts'

/** The limiter of a queue's permits, and that of a definition's tasks. */
export const permitsLimiter = (name: string): string => `permits:${name}`
export const definitionLimiter = (task: string): string => `task:${task}`

/** The beginnings of the names of limiters, by kind. */
const PREFIXES: readonly (readonly [prefix: string, kind: LimiterKind])[] = [
  [permitsLimiter(''), 'permits'],
  [definitionLimiter(''), 'definition'],
]

/** Returns the name of a limiter with its kind. */
export function limiterOf({ kind, name }: { readonly kind: LimiterKind; readonly name: string }): string {
  return kind === 'permits' ? permitsLimiter(name) : definitionLimiter(name)
}

/** Returns the kind of a limiter and its name without the kind, or undefined if it is of another kind. */
export function parseLimiter(limiter: string): { readonly kind: LimiterKind; readonly name: string } | undefined {
  const [prefix, kind] = PREFIXES.find(([start]) => limiter.startsWith(start)) ?? []
  return prefix === undefined || kind === undefined ? undefined : { kind, name: limiter.slice(prefix.length) }
}

/**
 * Returns what each task of a definition needs in a queue, which may be another one than that of the definition. Undefined if
 * it needs nothing.
 */
export function needsOf(definition: TaskDefinition, queue: QueueDefinition): readonly Need[] | undefined {
  const { permits = {} } = queue
  const needed = Object.entries(definition.permits)
    .filter(([name]) => Object.hasOwn(permits, name))
    .map(([name, amount]) => ({ limiter: permitsLimiter(name), amount }))
  const isLimited = definition.concurrency !== undefined && definition.queue === queue.name
  const needs = isLimited ? [...needed, { limiter: definitionLimiter(definition.name), amount: 1 }] : needed
  return needs.length === 0 ? undefined : needs
}

/** Returns the capacities of a queue's limiters in the catalogue, by the name of the limiter. */
export function capacitiesOf({ definitions, queue }: Catalogue, name: string): Readonly<Record<string, number>> {
  const { permits = {} } = queue(name)
  const ofPermits = Object.entries(permits).map(([permit, count]) => [permitsLimiter(permit), count] as const)
  const ofDefinitions = definitions.flatMap(({ queue: own, name: task, concurrency }) =>
    own !== name || concurrency === undefined ? [] : [[definitionLimiter(task), concurrency] as const],
  )
  return Object.fromEntries([...ofPermits, ...ofDefinitions])
}

/** Returns the turn of a task with this concurrency key, or undefined if it has no key or its queue is not fair. */
export function turnOf({ fairness }: QueueDefinition, key: string | undefined): Turn | undefined {
  return fairness === undefined || key === undefined ? undefined : { key, weight: weightOf(fairness, key) }
}
