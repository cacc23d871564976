// Creates the error for a stream that would never contain an event.
import { BullpenError } from '@bullpen/contract'

/** `about` is the subject of the message, such as `the tasks of cpu.fib`. */
export function noEvents(about: string): BullpenError {
  return new BullpenError(
    'no_events',
    `${about} have no events; set \`events: true\` in the task's definition, or wait for the task with GET /v1/tasks/{id}?wait=30s`,
  )
}
