// Creates the effects of handwritten ledgers.
import type { Effect } from './effects.ts'

export const started = (id: string, fencingToken: number, worker: string, at: number): Effect => ({
  what: 'start',
  id,
  fencingToken,
  worker,
  at,
})
export const ended = (id: string, fencingToken: number, worker: string, at: number): Effect => ({
  what: 'end',
  id,
  fencingToken,
  worker,
  at,
})
