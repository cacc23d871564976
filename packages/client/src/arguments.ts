// Checks the arguments of calls, for programs that are not checked by TypeScript.
import type { EnqueueRequest, TaskDefinition } from '@bullpen/contract'
import type { EventFilter } from './calls/event-calls.ts'

/** @throws TypeError unless `given` is a task's definition. `method` is the name of the client's method. */
export function assertDefinition(method: string, given: unknown): asserts given is TaskDefinition {
  if (isObject(given) && typeof given['name'] === 'string' && isObject(given['queueSettings'])) return
  throw new TypeError(
    `client.${method}: expected a task definition as the first argument, got ${kindOf(given)}; if you only have the task's name, use client.${method}Named`,
  )
}

/** @throws TypeError unless `given` is a string. `what` describes the string, such as 'a task id'. */
export function assertText(method: string, what: string, given: unknown): asserts given is string {
  if (typeof given !== 'string') throw new TypeError(`client.${method}: expected ${what}, got ${kindOf(given)}`)
}

/** @throws TypeError unless `given` is an array. `what` describes its elements. */
export function assertList(method: string, what: string, given: unknown): asserts given is readonly unknown[] {
  if (!Array.isArray(given)) throw new TypeError(`client.${method}: expected an array of ${what}, got ${kindOf(given)}`)
}

/** @throws TypeError unless each of `given` is a task with a name. */
export function assertTasks(method: string, given: unknown): asserts given is readonly EnqueueRequest[] {
  assertList(method, 'tasks', given)
  const wrong = given.findIndex((task) => !isObject(task) || typeof task['task'] !== 'string')
  if (wrong === -1) return
  throw new TypeError(
    `client.${method}: element ${wrong} is not a task; expected an object such as { task: 'email.welcome', input: { … } }`,
  )
}

/** @throws TypeError unless `given` names either a queue or a tag. */
export function assertEventFilter(given: unknown): asserts given is EventFilter {
  const { queue, tag }: { readonly queue?: unknown; readonly tag?: unknown } = isObject(given) ? given : {}
  if ((queue === undefined) === (tag === undefined)) {
    const got = queue !== undefined ? 'both' : isObject(given) ? 'neither' : kindOf(given)
    throw new TypeError(
      `client.events: expected either a queue or a tag, such as { queue: 'reports' } or { tag: 'customer:7' }, got ${got}`,
    )
  }
  if (queue === undefined) assertText('events', 'a tag', tag)
  else assertText('events', 'the name of a queue', queue)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'an array'
  return `${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`
}
