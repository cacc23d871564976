// Handlers that ask for more memory than any machine has, at once.
import { defineHandler, defineTask } from '@bullpen/contract'
import { z } from 'zod'

const here = import.meta.url
const output = z.object({ bytes: z.int() })
const PETABYTE = 2 ** 50

const GREEDY = {
  zeros: () => Buffer.alloc(PETABYTE),
  'no zeros': () => Buffer.allocUnsafe(PETABYTE),
  numbers: () => new Float64Array(PETABYTE / 8),
  'no such size': () => Buffer.alloc(Number.MAX_VALUE),
}
const input = z.object({ of: z.enum(['zeros', 'no zeros', 'numbers', 'no such size']) })

export const greedyTask = defineTask({ name: 'greedy.task', queue: 'q', input, output })
export const greedy = defineHandler(greedyTask, here, ({ input }) => ({ bytes: GREEDY[input.of]().byteLength }))

export const modestTask = defineTask({ name: 'modest.task', queue: 'q', input, output })
export const modest = defineHandler(modestTask, here, ({ input }) => {
  try {
    return { bytes: GREEDY[input.of]().byteLength }
  } catch {
    return { bytes: 0 }
  }
})

export const expectingTask = defineTask({
  name: 'expecting.task',
  queue: 'q',
  input,
  output,
  classify: (error) => (error instanceof RangeError ? { code: 'too_large', retryable: false } : undefined),
})
export const expecting = defineHandler(expectingTask, here, ({ input }) => ({ bytes: GREEDY[input.of]().byteLength }))
