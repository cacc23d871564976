// Isolated tasks that never come back, for the engine's runner to end.
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { z } from 'zod'

const limits = { queue: 'q', timeout: '1s', grace: '100ms', input: z.object({}), output: z.object({}) } as const
const inThread = defineTask({ ...limits, name: 'loop.thread', isolation: 'thread' })
const inProcess = defineTask({ ...limits, name: 'loop.process', isolation: 'process', memoryLimit: '64MiB' })

export const catalogue = defineCatalogue(inThread, inProcess)

const forEver = (): never => {
  while (true) {}
}
// Exported one by one: isolates look among a module's exports for the handler of their task.
export const threadLoop = defineHandler(inThread, import.meta.url, forEver)
export const processLoop = defineHandler(inProcess, import.meta.url, forEver)
export const handlers = { 'loop.thread': threadLoop, 'loop.process': processLoop }
