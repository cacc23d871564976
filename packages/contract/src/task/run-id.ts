// Creates and parses the ids of pipeline runs. An id is generated before Redis is called, and sorts by time.
import { BullpenError } from '../errors/errors.ts'
import { createTaskId, readTaskId } from './task-id.ts'

declare const brand: unique symbol

/** `run-<26 characters>`, where the characters are those of a task id: 48 bits of time and 80 random bits. */
export type RunId = string & { readonly [brand]: 'RunId' }

const PREFIX = 'run'
const INCARNATION_DIGITS = 8

/** Creates an id. `now` is in milliseconds since 1970, and `random` contains at least `ID_RANDOM_BYTES` random bytes. */
export function createRunId(now: number, random: Uint8Array): RunId {
  return createTaskId(PREFIX, now, random) as string as RunId
}

/**
 * Creates what distinguishes a run from earlier ones with the same id: 40 random bits as eight characters. `random` contains at least
 * `ID_RANDOM_BYTES` random bytes.
 */
export function createIncarnation(random: Uint8Array): string {
  return createTaskId(PREFIX, 0, random).slice(-INCARNATION_DIGITS)
}

/** Reads the creation time from an id, in ms since 1970. Returns undefined if the string is not the id of a run. */
export function readRunId(text: string): { readonly id: RunId; readonly createdAt: number } | undefined {
  const read = readTaskId(text)
  return read?.queue === PREFIX ? { id: text as RunId, createdAt: read.createdAt } : undefined
}

/** Returns the string as the id of a run. @throws BullpenError `run_not_found` if it is not one. */
export function runId(text: string): RunId {
  const read = readRunId(text)
  if (read === undefined) throw new BullpenError('run_not_found', notAnId(text))
  return read.id
}

/** Returns the string as the id of a run to start. @throws BullpenError `invalid_request` with the pointer `/id` if it is not one. */
export function newRunId(text: string): RunId {
  const read = readRunId(text)
  if (read !== undefined) return read.id
  const message = notAnId(text)
  throw new BullpenError('invalid_request', `/id: ${message}`, { errors: [{ pointer: '/id', message }] })
}

function notAnId(text: string): string {
  return `${JSON.stringify(text)} is not the id of a run; one looks like 'run-01jd3v7n8q0000000000000000'`
}
