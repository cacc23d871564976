// The task of the benchmark `http`, and the options of its processes.
import { defineCatalogue, defineTask } from '@bullpen/contract'
import { z } from 'zod'

/** The API key that the callers use. */
export const API_KEY = 'bench-key-0123456789abcdef'

/** Each worker has this many slots. */
export const SLOTS = 20

export const square = defineTask({
  name: 'bench.square',
  queue: 'bench',
  kind: 'short',
  input: z.object({ n: z.int() }),
  output: z.object({ square: z.int() }),
})

export const catalogue = defineCatalogue(square)

/** Where an API or a worker finds Redis. */
export interface PlatformOptions {
  readonly redisUrl: string
  readonly namespace: string
}

export interface CallersOptions {
  /** The address of the API. */
  readonly url: string
  /** How many callers there are. Each waits for the result of one task before it enqueues the next one. */
  readonly callers: number
}
